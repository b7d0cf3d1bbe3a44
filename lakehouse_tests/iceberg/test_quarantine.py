"""Refused rows stand in the quarantine as they were delivered, once, with their reasons."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from pyspark.sql import DataFrame

from lakehouse.errors import QuarantineFailed
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.read.inputs import incremental, latest
from lakehouse.iceberg.rules.rows import castable
from lakehouse.iceberg.values.write_context import Partitions, Run
from lakehouse.iceberg.values.write_result import Published, Unchanged
from lakehouse.iceberg.write.prepared_frame import PreparedFrame
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import (
    Append,
    Column,
    IcebergTable,
    Merge,
    Overwrite,
    OverwritePartitions,
)
from lakehouse_tests.iceberg.declarations import (
    DELIVERED,
    PEOPLE,
    content,
    delivery,
    people,
    snapshot_id,
)

pytestmark = pytest.mark.spark
QUARANTINE = "silver.people_quarantine"


@pytest.fixture
def delivered(filled_engine: Callable[..., Engine]) -> Engine:
    rows = [("1", "ann"), ("two", "bob"), ("x", None)]
    return filled_engine(lambda engine: write(engine, DELIVERED, delivery(engine, "a", rows)))


def test_holds_what_was_delivered_and_why_it_was_refused(delivered: Engine) -> None:
    done = write(delivered, PEOPLE, people, {"delivered": incremental(DELIVERED.name)})
    assert (
        isinstance(done, Published)
        and done.quarantined is not None
        and done.quarantined.rows == 2
    )
    assert content(
        delivered, QUARANTINE, "id", "name", "_reasons", "_source_file", "_source_row"
    ) == [
        ("two", "bob", ["castable_id"], "a", 2),
        ("x", None, ["castable_id", "not_null_name"], "a", 3),
    ]
    assert content(delivered, PEOPLE.name, "id", "name") == [(1, "ann")]


def test_that_does_not_take_the_refused_rows_keeps_the_others_from_being_published(
    delivered: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else they would be nowhere."""
    rows_once = PreparedFrame.quarantine_rows

    def rows_twice(prepared: PreparedFrame, refused: DataFrame) -> DataFrame:
        rows = rows_once(prepared, refused)
        return rows.unionAll(rows)

    monkeypatch.setattr(PreparedFrame, "quarantine_rows", rows_twice)
    with pytest.raises(QuarantineFailed, match=f"{QUARANTINE} rejected the quarantined rows"):
        write(delivered, PEOPLE, people, {"delivered": incremental(DELIVERED.name)})
    assert snapshot_id(delivered, PEOPLE.name) is None
    monkeypatch.undo()
    write(delivered, PEOPLE, people, {"delivered": incremental(DELIVERED.name)})
    assert content(delivered, PEOPLE.name, "id", "name") == [(1, "ann")]
    assert len(content(delivered, QUARANTINE)) == 2


@pytest.mark.parametrize("delivered_as", ["double", "float", "decimal(4,1)"])
def test_takes_a_number_whose_fraction_would_be_cut(
    embedded_engine: Engine, delivered_as: str
) -> None:
    """A function may have made it of text."""
    table = replace(
        PEOPLE,
        columns=[Column("id", "bigint")],
        write=Append(once_by=()),
        rules=[castable("id", "bigint")],
    )
    frame = embedded_engine.sql(
        f"SELECT CAST(id AS {delivered_as}) AS id FROM VALUES (1.0), (1.5), (NULL) AS t(id)"
    )
    write(embedded_engine, table, lambda: frame)
    assert content(embedded_engine, table.name) == [(1,), (None,)]
    assert content(embedded_engine, QUARANTINE, "id", "_reasons") == [("1.5", ["castable_id"])]


NAMED = replace(DELIVERED, name="bronze.named", partitioning=["name"])
LANDED = IcebergTable(
    name="silver.landed",
    comment="What was delivered, once, with its source.",
    columns=[Column("id", "bigint"), *DELIVERED.columns[1:]],
    write=Append(),
    rules=[castable("id", "bigint")],
)
MERGED = replace(LANDED, name="silver.merged", write=Merge(on=["name"]))
WHOLE = replace(LANDED, name="silver.whole", write=Overwrite())
BY_NAME = replace(
    LANDED, name="silver.by_name", write=OverwritePartitions(by="name"), partitioning=["name"]
)
ANN_AND_BOB = Run("again", Partitions(("ann", "bob")))


def as_it_came(delivered: DataFrame) -> DataFrame:
    return delivered


def resolved(delivered: DataFrame) -> DataFrame:
    """Take a word for a number, and a number for a word."""
    return delivered.selectExpr(
        "decode(id, 'two', '2', '1', 'one', id) AS id", *DELIVERED.column_names[1:]
    )


def held(engine: Engine, table: IcebergTable) -> list[tuple]:
    assert table.quarantine is not None
    return content(engine, table.quarantine.name, "id", "_source_row")


def write_all(engine: Engine, compute: Callable[..., DataFrame]) -> None:
    for table in (MERGED, WHOLE):
        write(engine, table, compute, {"delivered": latest(NAMED.name)})
    write(engine, LANDED, compute, {"delivered": incremental(NAMED.name)})
    write(engine, BY_NAME, compute, {"delivered": latest(NAMED.name, by="name")}, ANN_AND_BOB)


@pytest.mark.long
def test_a_row_that_a_changed_function_decides_otherwise_is_in_one_place(
    embedded_engine: Engine,
) -> None:
    """An append keeps what it has; of the other tables the one that was accepted is refused
    now.
    """
    write(
        embedded_engine, NAMED, delivery(embedded_engine, "a", [("1", "ann"), ("two", "bob")])
    )
    write_all(embedded_engine, as_it_came)
    assert [held(embedded_engine, table) for table in (MERGED, WHOLE, LANDED, BY_NAME)] == [
        [("two", 2)]
    ] * 4
    write(embedded_engine, NAMED, delivery(embedded_engine, "b", [("3", "cat"), ("x", "dot")]))
    embedded_engine.sql(
        f"DELETE FROM {embedded_engine.catalog.sql_name(NAMED.name)} WHERE name = 'dot'"
    )
    write_all(embedded_engine, resolved)
    assert [held(embedded_engine, table) for table in (MERGED, WHOLE, BY_NAME)] == [
        [("one", 1)]
    ] * 3
    for table in (MERGED, WHOLE):
        assert content(embedded_engine, table.name, "id", "name") == [(2, "bob"), (3, "cat")]
    assert content(embedded_engine, BY_NAME.name, "id", "name") == [(2, "bob")]
    assert held(embedded_engine, LANDED) == []
    assert content(embedded_engine, LANDED.name, "id", "name") == [
        (1, "ann"),
        (2, "bob"),
        (3, "cat"),
    ]


@pytest.mark.long
def test_a_row_whose_source_has_it_no_more_leaves(delivered: Engine) -> None:
    inputs = {"delivered": incremental(DELIVERED.name)}
    write(delivered, PEOPLE, people, inputs, Run("first"))
    delivered.sql(
        f"DELETE FROM {delivered.catalog.sql_name(DELIVERED.name)} WHERE name IS NULL"
    )
    write(delivered, PEOPLE, people, inputs, Run("second", full_recompute=False))
    assert content(delivered, QUARANTINE, "id") == [("two",)]


BY_KEY = IcebergTable(
    name="silver.by_key",
    comment="The last number of each name, without its source.",
    columns=[Column("id", "bigint"), Column("name", "string")],
    write=Merge(on=["name"]),
    rules=[castable("id", "bigint")],
)


@pytest.mark.long
def test_a_row_that_left_for_a_write_without_a_change_stays_away(
    embedded_engine: Engine,
) -> None:
    """The correction is what the table has, so that no commit of it tells of that run."""
    inputs = {"delivered": incremental(DELIVERED.name)}
    for file, row in (("a", ("1", "ann")), ("b", ("x", "ann")), ("c", ("1", "ann"))):
        write(embedded_engine, DELIVERED, delivery(embedded_engine, file, [row]))
        done = write(embedded_engine, BY_KEY, as_it_came, inputs, Run(file))
        assert isinstance(done, Published if file == "a" else Unchanged)
        assert held(embedded_engine, BY_KEY) == ([("x", 1)] if file == "b" else [])
    write(embedded_engine, DELIVERED, delivery(embedded_engine, "d", [("2", "bob")]))
    write(embedded_engine, BY_KEY, as_it_came, inputs, Run("d"))
    assert held(embedded_engine, BY_KEY) == []
    assert content(embedded_engine, BY_KEY.name, "id", "name") == [(1, "ann"), (2, "bob")]
