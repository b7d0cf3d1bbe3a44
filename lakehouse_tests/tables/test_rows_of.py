"""What follows from the table that rows are of: casts, the source of each row, people and docs."""

from dataclasses import replace

import pytest

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.read.inputs import latest
from lakehouse.iceberg.rules.rows import castable, not_null
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.tables.feed import Feed, FeedColumn, bronze_table
from lakehouse.tables.rows_of import SOURCE_OF_ROW
from lakehouse.tables.table import (
    Append,
    Column,
    IcebergTable,
    Merge,
    Overwrite,
    Versions,
    by_day,
)

pytestmark = pytest.mark.unit

FEED = Feed(
    "orders",
    [
        FeedColumn("id", "Identifier of the order."),
        "amount",
        "day",
        "note",
        FeedColumn("email", personal=True),
    ],
    table="bronze.orders",
    time_zone="Asia/Kuala_Lumpur",
    subject="id",
)
RAW = bronze_table(FEED, "Orders as they were delivered.")
COLUMNS = [
    Column("id", "bigint"),
    Column("amount", "decimal(10,2)"),
    Column("day", "date"),
    Column("email", "string"),
]


def orders(*columns, write=None, **declaration):
    return IcebergTable(
        "silver.orders",
        "t",
        columns or COLUMNS,
        write or Merge(on="id"),
        rows_of=RAW,
        **declaration,
    )


def cast_columns(table):
    return [rule.columns[0] for rule in table.rules if rule.cast]


def test_a_column_that_is_text_there_is_read_by_its_type_in_the_zone_of_the_feed():
    in_zone = {"time_zone": "Asia/Kuala_Lumpur"}

    assert orders().rules == (
        castable("id", "bigint", **in_zone),
        castable("amount", "decimal(10,2)", **in_zone),
        castable("day", "date", **in_zone),
    )


def test_rows_are_not_computed_anew_because_a_cast_is_no_longer_declared():
    in_zone = {"time_zone": "Asia/Kuala_Lumpur"}
    declared = [
        castable(name, type_, **in_zone)
        for name, type_ in (("id", "bigint"), ("amount", "decimal(10,2)"), ("day", "date"))
    ]
    before = IcebergTable(
        "silver.orders",
        "t",
        COLUMNS,
        Merge(on="id"),
        rules=[*declared, not_null("id")],
        no_subject="none",
    )

    assert orders(rules=[not_null("id")]).declaration_hash == before.declaration_hash


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (Column("amount", "double", cast=False), "it says so"),
        (Column("amount", "string"), "it stays text"),
        (Column("amount", "array<double>"), "no text is read as that"),
        (Column("total", "double"), "it is not there"),
        (Column("_source_row", "bigint"), "it is no text there"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_a_column_is_not_read_from_text_where(column, why):
    assert cast_columns(orders(Column("id", "string"), column)) == []


def test_the_time_of_a_merge_is_not_read_from_text():
    table = orders(Column("id", "bigint"), Column("day", "timestamp"), write=Merge("id", "day"))

    assert cast_columns(table) == ["id"]


def test_a_column_that_was_renamed_is_read_from_the_text_of_its_former_name():
    table = orders(Column("id", "string"), Column("total", "double", renamed_from="amount"))

    assert cast_columns(table) == ["total"]


def test_a_cast_that_is_declared_counts_alone():
    own = castable("day", "date", time_zone="UTC", on_failure="block")
    table = orders(rules=[own])

    assert [rule for rule in table.rules if rule.columns == ("day",)] == [own]


@pytest.mark.parametrize(
    ("write", "declaration", "has_source"),
    [
        (Append(), {}, True),
        (by_day("day", since="2024-01-31"), {"versions": Versions("id", "day")}, True),
        (Merge("id"), {"versions": Versions("id", "day")}, True),
        (Merge("id"), {}, False),
        (Overwrite(), {}, False),
        (Overwrite(), {"source_columns": True}, True),
        (Append(once_by=("id",)), {"source_columns": False}, False),
    ],
)
def test_the_source_of_a_row_comes_by_itself_where_the_table_keeps_it(
    write, declaration, has_source
):
    table = orders(write=write, **declaration)

    assert table.column_names[len(COLUMNS) :] == (SOURCE_OF_ROW if has_source else ())
    assert not any(column.required for column in table.columns)
    assert replace(table, comment="another").column_names == table.column_names


def test_a_source_column_that_is_declared_stays_as_it_is():
    own = Column("_source_file", "string", "My own words.")
    table = orders(*COLUMNS, own, write=Append())

    assert table.column("_source_file") == own
    assert table.column_names[-4:] == SOURCE_OF_ROW


def test_people_and_docs_are_as_there_where_nothing_else_is_said():
    table = orders(*COLUMNS[1:], Column("id", "bigint", "My own words."))

    assert (table.subject, table.personal_columns) == ("id", {"email"})
    assert table.column("id").doc == "My own words."
    assert orders().column("id").doc == "Identifier of the order."
    assert orders(no_subject="none of them").subject is None
    assert orders(Column("amount", "double"), write=Overwrite()).subject is None


def test_why_nobody_is_the_subject_is_as_there_where_personal_columns_are():
    raw = bronze_table(replace(FEED, subject=None, no_subject="no key"), "Orders.")
    personal = IcebergTable("silver.t", "t", COLUMNS, Overwrite(), rows_of=raw)
    others = IcebergTable("silver.t", "t", COLUMNS[:1], Overwrite(), rows_of=raw)

    assert (personal.no_subject, others.no_subject) == ("no key", None)


def test_days_and_moments_are_of_the_feeds_time_zone_unless_the_table_says_another():
    daily = by_day("day", since="2024-01-31")

    assert orders(write=daily).windows.time_zone == "Asia/Kuala_Lumpur"
    assert orders(write=daily, time_zone="UTC").windows.time_zone == "UTC"
    assert orders(time_zone="UTC").casts["day"].time_zone == "UTC"
    other = by_day("day", since="2024-01-31", time_zone="Europe/Berlin")
    assert orders(write=other).windows.time_zone == "Europe/Berlin"


def test_rows_may_be_of_a_table_whose_rows_are_of_another():
    clean = orders(write=Append())
    picked = IcebergTable("gold.picked", "t", COLUMNS, Append(), rows_of=clean)

    assert (cast_columns(picked), picked.subject) == ([], "id")
    assert picked.column_names == clean.column_names
    assert picked.wall_time_zone == "Asia/Kuala_Lumpur"


def test_a_name_in_place_of_the_table_is_rejected():
    with pytest.raises(
        DeclarationError,
        match=r"rows_of is 'bronze\.orders'; expected the declaration of a table",
    ):
        IcebergTable("silver.t", "t", COLUMNS, Overwrite(), rows_of="bronze.orders")


def test_rows_that_are_of_a_table_that_is_not_read_are_rejected():
    with pytest.raises(
        DeclarationError,
        match=r"silver\.orders has rows_of=bronze\.orders, and reads bronze\.others; expected",
    ):

        @iceberg_asset(orders(), inputs={"rows": latest("bronze.others")})
        def made(rows):
            return rows
