"""How a table's columns and layout came to be, told from its metadata."""

from dataclasses import replace

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.evolve.planning import apply, ensure
from lakehouse.iceberg.evolve.schema_history import SchemaChange, read_schema_history
from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Column
from lakehouse_tests.examples import glue_in_test_all
from lakehouse_tests.iceberg.evolving import NAME, columns, declared

pytestmark = pytest.mark.spark
FIRST = declared(columns=columns(id="int", amount="decimal(9,2)"))
SECOND = declared(
    columns=columns(
        id="bigint", amount="decimal(9,2)", note=Column("note", "string", "What was said.")
    )
)
RENAMED = declared(
    columns=[
        SECOND.columns[0],
        Column("total", "decimal(9,2)", renamed_from="amount"),
        SECOND.columns[2],
    ]
)
BACK = declared(
    columns=[
        SECOND.columns[0],
        Column("amount", "decimal(9,2)", renamed_from="total"),
        SECOND.columns[2],
    ]
)


def told(changes: list[SchemaChange]) -> list[tuple[str, str, str, str]]:
    return [
        (one.change.what, one.change.name, one.change.before, one.change.after)
        for one in changes
    ]


def add(engine: Engine, table, run: str, sql: str) -> None:
    write(engine, table, lambda: engine.sql(sql), run=Run(run))


def test_each_change_stands_with_the_run_that_made_it(engine: Engine) -> None:
    add(engine, FIRST, "run-1", "SELECT 1 AS id, 1.00BD AS amount")
    add(engine, SECOND, "run-2", "SELECT 2L AS id, 1.00BD AS amount, 'x' AS note")
    found = read_schema_history(engine, NAME)
    assert told(found) == [
        ("table created", "", "", "2 columns"),
        ("type widened", "id", "int", "bigint"),
        ("column added", "note", "", "string"),
    ]
    assert [one.run_id for one in found] == ["run-1", "run-2", "run-2"]
    assert found[1].snapshot.commit.kind == "evolution"
    assert [one.at for one in found] == sorted(one.at for one in found)


@glue_in_test_all
def test_a_rename_and_the_way_back_are_two_changes(engine: Engine) -> None:
    add(engine, SECOND, "run-1", "SELECT 2L AS id, 1.00BD AS amount, 'x' AS note")
    apply(engine, RENAMED)
    apply(engine, BACK)
    assert told(read_schema_history(engine, NAME))[1:] == [
        ("column renamed", "total", "amount", "total"),
        ("column renamed", "amount", "total", "amount"),
    ]


def test_fields_comments_drops_and_moves_are_told(embedded_engine: Engine) -> None:
    engine = embedded_engine
    before = declared(
        columns=columns(
            id="bigint", s="struct<a:int>", lines="array<struct<p:int>>", gone="string"
        )
    )
    add(
        engine,
        before,
        "run",
        "SELECT 1L AS id, named_struct('a', 1) AS s, array(named_struct('p', 1)) AS lines, 'x'"
        " AS gone",
    )
    after = declared(
        columns=columns(
            s="struct<a:int,b:string>",
            id=Column("id", "bigint", "Number."),
            lines="array<struct<p:bigint>>",
        ),
        dropped=["gone"],
    )
    apply(engine, after)
    assert set(told(read_schema_history(engine, NAME))[1:]) == {
        ("column dropped", "gone", "string", ""),
        ("column added", "s.b", "", "string"),
        ("comment changed", "id", "", "Number."),
        ("type widened", "lines.element.p", "int", "bigint"),
    }


@glue_in_test_all
def test_partitioning_and_sort_order_are_told(engine: Engine) -> None:
    first = declared(columns=columns(id="bigint", d="date"), partitioning=["days(d)"])
    add(engine, first, "run", "SELECT 1L AS id, DATE '2024-01-01' AS d")
    apply(engine, replace(first, partitioning=["days(d)", "bucket(10, id)"]))
    apply(
        engine,
        replace(first, partitioning=["days(d)", "bucket(10, id)"], sort_order=["id desc"]),
    )
    found = read_schema_history(engine, NAME)
    assert told(found)[1:] == [
        ("partitioning changed", "", "days(d)", "days(d), bucket(10, id)"),
        ("sort order changed", "", "", "id desc nulls last"),
    ]
    assert all(one.at and one.snapshot is None for one in found[1:])


def test_a_change_that_no_snapshot_has_yet(embedded_engine: Engine) -> None:
    add(embedded_engine, FIRST, "run-1", "SELECT 1 AS id, 1.00BD AS amount")
    embedded_engine.sql(
        f"ALTER TABLE {embedded_engine.catalog.sql_name(NAME)} ADD COLUMN note string"
    )
    last = read_schema_history(embedded_engine, NAME)[-1]
    assert told([last]) == [("column added", "note", "", "string")]
    assert last.snapshot is None and last.at is not None


def test_a_table_that_was_never_written(embedded_engine: Engine) -> None:
    ensure(embedded_engine, FIRST)
    (found,) = read_schema_history(embedded_engine, NAME)
    assert told([found]) == [("table created", "", "", "2 columns")]
    assert found.at and not found.run_id
