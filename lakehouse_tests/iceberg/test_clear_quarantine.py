"""Rows that a user clears from a quarantine: removed for good, and noted without values."""

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.cleared_rows import cleared_table, clearings
from lakehouse.iceberg.read.inputs import incremental
from lakehouse.iceberg.rules.rows import castable, not_null
from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.write import user_removals
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Column, IcebergTable, Merge
from lakehouse_tests.iceberg.declarations import DELIVERED, content, delivery

pytestmark = pytest.mark.spark

TABLE = IcebergTable(
    name="silver.named",
    comment="One row for each name.",
    columns=[Column("id", "bigint"), *DELIVERED.columns[1:]],
    write=Merge(on=["name"]),
    rules=[castable("id", "bigint"), not_null("name")],
)
QUARANTINE, NOTED = "silver.named_quarantine", "silver.named_quarantine_cleared"


def compute(engine: Engine, *, resolved: bool = False, run: str = "run") -> None:
    def function(delivered: DataFrame) -> DataFrame:
        text = "decode(id, 'two', '2', id)" if resolved else "id"
        return delivered.selectExpr(f"{text} AS id", *DELIVERED.column_names[1:])

    everything = Run(run, reads_everything=True)
    write(engine, TABLE, function, {"delivered": incremental(DELIVERED.name)}, everything)


def clear(engine: Engine, **which: str) -> int:
    return user_removals.clear_quarantine(engine, TABLE, by="ann", why="nobody knows", **which)


@pytest.fixture
def quarantined(filled_engine: Callable[..., Engine]) -> Engine:
    """An engine with three quarantined rows of two files."""

    def fill(engine: Engine) -> None:
        rows = [("1", "ann"), ("two", "bob"), ("x", None)]
        write(engine, DELIVERED, delivery(engine, "a", rows))
        write(engine, DELIVERED, delivery(engine, "b", [("y", "cat")]))
        compute(engine)

    return filled_engine(fill)


def held(engine: Engine) -> list[str]:
    return [row[0] for row in content(engine, QUARANTINE, "id")]


@pytest.mark.long
def test_rows_are_cleared_by_rule_and_by_file(quarantined: Engine) -> None:
    assert clear(quarantined, rule="not_null_name") == 1
    assert held(quarantined) == ["two", "y"]
    assert clear(quarantined, file="b") == 1
    assert held(quarantined) == ["two"]
    assert clear(quarantined, file="b") == 0
    assert clear(quarantined) == 1
    assert held(quarantined) == []


@pytest.mark.long
def test_who_why_and_how_many_is_kept_and_no_value(quarantined: Engine) -> None:
    clear(quarantined)
    (clearing,) = clearings(quarantined, TABLE)
    assert (clearing.by, clearing.why, clearing.rows) == ("ann", "nobody knows", 3)
    main = read_history(quarantined, QUARANTINE).main
    assert {"ann", "nobody knows"} <= set(main.summary.values())
    assert cleared_table(TABLE).column_names[:5] == (
        "_row_key",
        "_reasons",
        "_source_file",
        "_source_sha256",
        "_source_row",
    )
    assert content(quarantined, NOTED, "_reasons", "_source_file", "_source_row") == [
        (["castable_id", "not_null_name"], "a", 3),
        (["castable_id"], "a", 2),
        (["castable_id"], "b", 1),
    ]


@pytest.mark.scenario
def test_what_holds_after_a_correction_comes_into_the_table(quarantined: Engine) -> None:
    clear(quarantined)
    compute(quarantined, resolved=True, run="again")
    assert content(quarantined, TABLE.name, "id", "name") == [(1, "ann"), (2, "bob")]
    assert held(quarantined) == []
