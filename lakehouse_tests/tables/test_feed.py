"""What a feed declares, what is refused of it, and the bronze table that follows from it."""

from dataclasses import replace

import pytest

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.evolve.planning import plan
from lakehouse.tables.feed import Feed, FeedColumn, bronze_table
from lakehouse.tables.table import Column
from lakehouse_tests.ingestion.conftest import FRUITS


def test_bronze_holds_the_delivered_columns_as_strings_and_their_source() -> None:
    table = bronze_table(FRUITS, "Fruits as delivered.")

    assert [(column.name, column.type) for column in table.columns] == [
        ("id", "string"), ("fruit", "string"), ("berry", "string"),
        ("_source_file", "string"), ("_source_sha256", "string"), ("_source_modified_at", "timestamp"),
        ("_source_row", "bigint"), ("_ingested_at", "timestamp"),
    ]  # fmt: skip
    assert [column.name for column in table.columns if column.required] == list(
        table.column_names[3:]
    )


def test_bronze_knows_a_column_by_the_name_in_files_too() -> None:
    """A person is found by either, and a column that bronze had under that name stays."""
    feed = Feed(
        "a", ["id", FeedColumn("mail", header="E-Mail Adr.", personal=True)], "bronze.a"
    )

    table = bronze_table(replace(feed, subject="id"), "As delivered.")
    assert table.column_names[:2] == ("id", "mail")
    assert table.column("mail").renamed_from == ("E-Mail Adr.",)
    assert plan(table, None).describe() == ["create the table with 7 columns"]


def test_bronze_renames_a_column_that_it_had_under_a_reserved_name() -> None:
    feed = Feed("a", ["id", FeedColumn("reasons", header="_reasons")], "bronze.a")

    assert bronze_table(feed, "").column("reasons").renamed_from == ("_reasons",)


def test_bronze_may_have_columns_of_its_own_and_what_else_a_table_declares() -> None:
    day = Column("_event_date", "date", "The day of the row.")

    table = bronze_table(
        FRUITS, "Fruits as delivered.", extra=[day], partitioning=["_event_date"], owner="data"
    )

    assert table.column_names[3] == "_event_date"
    assert table.partitioning == ("_event_date",)
    assert table.owner == "data"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": "Fruits!"}, "not a feed name"),
        ({"columns": []}, "no required column"),
        ({"columns": [FeedColumn("id", optional=True)]}, "no required column"),
        ({"columns": ["id", "ID"]}, "more than once"),
        (
            {"columns": ["id", "_source_file"]},
            "declare its name in files: FeedColumn.'source_file', header='_source_file'.",
        ),
        ({"columns": ["id", "_POS"]}, "the name is reserved for Iceberg's metadata columns"),
        ({"columns": ["id", FeedColumn("no", header="ID")]}, "more than once"),
        ({"formats": ["xlsx"]}, "'xlsx'; expected some of 'csv', 'csv.gz'"),
        ({"formats": []}, "empty; expected"),
        ({"on_new_column": "guess"}, "'guess'; expected some of 'reject', 'ignore', 'add'"),
        ({"time_zone": "Mars/Olympus"}, "'Mars/Olympus'; expected a name such as UTC"),
        ({"subject": "customer_id"}, "'customer_id'; expected some of 'id'"),
        ({"moment": "made_at"}, "'made_at'; expected some of 'id'"),
        ({"max_files_per_run": 0}, "max_files_per_run is 0"),
    ],
)
def test_a_declaration_that_cannot_work_is_rejected(wrong: dict, said: str) -> None:
    right = {"name": "fruits", "columns": ["id"], "table": "bronze.raw_fruits"}

    with pytest.raises(DeclarationError, match=said):
        Feed(**right | wrong)
