"""Refused rows stand in the quarantine as they were delivered, once, with their reasons."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from pyspark.sql import DataFrame

from lakehouse.errors import QuarantineFailed
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.read.inputs import incremental
from lakehouse.iceberg.rules.rows import castable
from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.values.write_result import Published, Unchanged
from lakehouse.iceberg.write.prepared_frame import PreparedFrame
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Append, Column, IcebergTable, Merge
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


def test_holds_what_was_delivered_and_why_it_was_quarantined(delivered: Engine) -> None:
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


def test_that_does_not_take_the_quarantined_rows_keeps_the_others_from_being_published(
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


def as_it_came(delivered: DataFrame) -> DataFrame:
    return delivered


def held(engine: Engine, table: IcebergTable) -> list[tuple]:
    assert table.quarantine is not None
    return content(engine, table.quarantine.name, "id", "_source_row")


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
