"""Changes that evolution denies; each leaves the table as it is."""

import pytest
from pyspark.sql import DataFrame

from lakehouse.errors import EvolutionRefused
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.evolve.planning import apply, ensure, plan
from lakehouse.iceberg.metadata.table_state import read_state
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Column, IcebergTable
from lakehouse_tests.iceberg.declarations import rows_of
from lakehouse_tests.iceberg.evolving import columns, declared, of, state_like

DENIED = {
    "narrowing": (of(a="bigint"), of(a="int"), "column a", "bigint", "int"),
    "narrower decimal": (
        of(a="decimal(12,2)"),
        of(a="decimal(10,2)"),
        "column a",
        "decimal(12,2)",
        "decimal(10,2)",
    ),
    "other scale": (
        of(a="decimal(10,2)"),
        of(a="decimal(12,4)"),
        "column a",
        "decimal(10,2)",
        "decimal(12,4)",
    ),
    "other type": (of(a="string"), of(a="date"), "column a", "string", "date"),
    "other elements": (
        of(a="array<string>"),
        of(a="array<int>"),
        "column a.element",
        "string",
        "int",
    ),
    "other keys": (
        of(a="map<int,string>"),
        of(a="map<bigint,string>"),
        "column a",
        "map<int,string>",
        "map<bigint,string>",
    ),
    "narrower field": (
        of(a="struct<b:bigint>"),
        of(a="struct<b:int>"),
        "column a.b",
        "bigint",
        "int",
    ),
    "left out": (of(a="int", b="date"), of(a="int"), "column b", "date", "absent"),
    "field left out": (
        of(s="struct<a:int,b:int>"),
        of(s="struct<a:int>"),
        "column s.b",
        "int",
        "absent",
    ),
    "required now": (
        of(a="int"),
        of(a=Column("a", "int", required=True)),
        "column a",
        "int",
        "int, required",
    ),
    "new and required": (
        of(a="int"),
        of(a="int", b=Column("b", "date", required=True)),
        "column b",
        "absent",
        "date, required",
    ),
    "renamed onto a column that is there": (
        of(a="int", b="int"),
        of(b=Column("b", "int", renamed_from="a")),
        "column a",
        "int",
        "the former name of b (int)",
    ),
    "dropped from under the partitioning": (
        declared(columns=columns(a="int", b="string"), partitioning=["b"]),
        declared(columns=columns(a="int"), dropped=["b"]),
        "column b",
        "string",
        "dropped",
    ),
    "widened under the partitioning": (
        declared(columns=columns(a="int"), partitioning=["a"]),
        declared(columns=columns(a="bigint"), partitioning=["a"]),
        "column a",
        "int",
        "bigint",
    ),
    "older format": (
        declared(format_version=3),
        declared(format_version=2),
        "the format version",
        "3",
        "2",
    ),
}


@pytest.mark.parametrize(
    ("before", "after", "subject", "current", "wanted"), DENIED.values(), ids=DENIED.keys()
)
def test_a_denied_change_names_the_column_both_types_and_the_next_step(
    before: IcebergTable, after: IcebergTable, subject: str, current: str, wanted: str
) -> None:
    (denied,) = plan(after, state_like(before)).denied
    assert (denied.subject, denied.current, denied.declared) == (subject, current, wanted)
    assert denied.next_step


def test_a_table_without_rows_is_dropped_to_change_a_type() -> None:
    (denied,) = plan(of(a="int"), state_like(of(a="string"), is_empty=True)).denied
    assert denied.next_step == (
        "It has no rows: `lakehouse sql --write 'DROP TABLE silver.orders'`, and its next run"
        " creates it."
    )


def test_a_table_is_empty_after_its_first_run_failed(embedded_engine: Engine) -> None:
    def failing() -> DataFrame:
        raise ValueError

    table = of(a="int")
    with pytest.raises(ValueError):
        write(embedded_engine, table, failing)
    state = read_state(embedded_engine, table.name)
    assert state is not None
    assert state.is_empty

    write(embedded_engine, table, rows_of(embedded_engine, "a int", [(1,)]))
    state = read_state(embedded_engine, table.name)
    assert state is not None
    assert not state.is_empty


def test_a_denied_change_leaves_the_table_as_it_is(embedded_engine: Engine) -> None:
    before, after = of(a="bigint", b="date"), of(a="int", c="int")
    ensure(embedded_engine, before)
    sql_name = embedded_engine.catalog.sql_name(before.name)
    embedded_engine.sql(f"INSERT INTO {sql_name} VALUES (1, NULL)")
    metadata = embedded_engine.catalog.load(before.name).metadata_location
    for change in (ensure, apply):
        with pytest.raises(EvolutionRefused, match=r"(?s)column a is bigint.*column b is date"):
            change(embedded_engine, after)
    assert embedded_engine.catalog.load(before.name).metadata_location == metadata
