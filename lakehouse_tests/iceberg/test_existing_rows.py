"""Partitions computed from what stands in them and what came since, or anew from all their
rows.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.read.inputs import existing_rows, incremental
from lakehouse.iceberg.rules.rows import between
from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.values.write_result import Unchanged
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Append, Column, IcebergTable
from lakehouse_tests.iceberg.declarations import (
    DAYS,
    MONDAY,
    TUESDAY,
    WEDNESDAY,
    content,
    rows_of,
    run_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark

RAW = IcebergTable(
    name="bronze.days",
    comment="Numbers as they came.",
    columns=[Column("d", "date"), Column("v", "int"), Column("id", "bigint")],
    partitioning=["days(d)"],
    write=Append(once_by=()),
)
INPUTS = {"came": incremental(RAW.name, by="d"), "stand": existing_rows(DAYS.name, by="d")}


@pytest.fixture
def first(filled_engine: Callable[..., Engine]) -> Engine:
    """Two days, each with a row that came and was computed."""

    def fill(engine: Engine) -> None:
        come(engine, (MONDAY, 1, 1), (TUESDAY, 2, 2))
        compute(engine, MONDAY, TUESDAY)

    return filled_engine(fill)


def come(engine: Engine, *rows: tuple[date, int, int]) -> None:
    write(engine, RAW, rows_of(engine, "d date, v int, id bigint", rows))


def expire_all_but_main(engine: Engine, table: IcebergTable) -> None:
    """Not of a table of `first`: others bring its files back."""
    engine.sql(
        f"CALL {engine.catalog.name}.system.expire_snapshots(table => '{table.name}',"
        f" older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)"
    )


def rewrite_all(engine: Engine, table: IcebergTable) -> None:
    options = "options => map('rewrite-all', 'true')"
    engine.sql(
        f"CALL {engine.catalog.name}.system.rewrite_data_files(table => '{table.name}',"
        f" {options})"
    )


def compute(
    engine: Engine, *days: date, table: IcebergTable = DAYS, full_recompute: bool = False
) -> tuple[int, int]:
    """Compute days, and return how many rows came and how many stood."""
    given: dict[str, int] = {}

    def union(came: "DataFrame", stand: "DataFrame") -> "DataFrame":
        given.update(came=came.count(), stand=stand.count())
        return came.unionByName(stand)

    write(engine, table, union, INPUTS, replace(run_of(*days), full_recompute=full_recompute))
    return given["came"], given["stand"]


def test_what_came_is_added_to_what_stands(first: Engine) -> None:
    come(first, (TUESDAY, 3, 3))
    assert compute(first, TUESDAY) == (1, 1)
    assert content(first, DAYS.name, "id") == [(1,), (2,), (3,)]


def test_a_whole_table_that_reads_what_came_reads_it_once(embedded_engine: Engine) -> None:
    """It has no partitions that a person could ask for in full."""
    whole = IcebergTable(
        name="silver.whole", columns=RAW.columns, write=Append(once_by=()), comment="All days."
    )
    came = {"came": incremental(RAW.name, by="d")}
    come(embedded_engine, (MONDAY, 1, 1))
    write(embedded_engine, whole, lambda came: came, came)
    again = write(embedded_engine, whole, lambda came: came, came, Run(full_recompute=True))
    assert isinstance(again, Unchanged)
    assert [pin.note for pin in again.pins.values()] == [""]
    assert content(embedded_engine, whole.name, "id") == [(1,)]


@pytest.mark.long
def test_what_a_day_was_given_while_another_waits_is_not_given_again(first: Engine) -> None:
    come(first, (MONDAY, 3, 3), (TUESDAY, 4, 4))
    assert compute(first, MONDAY) == (1, 1)
    come(first, (MONDAY, 5, 5))
    assert compute(first, MONDAY) == (3, 0)
    assert content(first, DAYS.name, "id") == [(1,), (2,), (3,), (5,)]
    assert compute(first, TUESDAY) == (1, 1), "what waited is added to what stands"
    come(first, (MONDAY, 6, 6))
    assert compute(first, MONDAY) == (1, 3)
    assert content(first, DAYS.name, "id") == [(1,), (2,), (3,), (4,), (5,), (6,)]


@pytest.mark.long
def test_nor_where_the_commit_that_says_so_has_expired(embedded_engine: Engine) -> None:
    engine = embedded_engine
    come(engine, (MONDAY, 1, 1), (TUESDAY, 2, 2))
    compute(engine, MONDAY, TUESDAY)
    come(engine, (MONDAY, 3, 3), (TUESDAY, 4, 4), (WEDNESDAY, 5, 5))
    compute(engine, MONDAY)
    compute(engine, WEDNESDAY)
    expire_all_but_main(engine, DAYS)
    come(engine, (MONDAY, 6, 6))
    assert compute(engine, MONDAY) == (3, 0)


def test_a_day_is_computed_anew_where_the_source_was_rewritten(first: Engine) -> None:
    first.sql(f"DELETE FROM {first.catalog.sql_name(RAW.name)} WHERE id = 2")
    come(first, (TUESDAY, 3, 3))
    assert compute(first, TUESDAY) == (1, 0)
    assert content(first, DAYS.name, "id") == [(1,), (3,)]


def test_a_day_is_computed_anew_where_the_rules_are_others(first: Engine) -> None:
    come(first, (TUESDAY, 3, 3))
    stricter = replace(DAYS, rules=[between("v", 0, 2), *DAYS.rules[1:]])
    assert compute(first, TUESDAY, table=stricter) == (2, 0)


def test_a_day_is_computed_anew_where_somebody_else_wrote_the_table(first: Engine) -> None:
    first.sql(f"DELETE FROM {first.catalog.sql_name(DAYS.name)} WHERE id = 2")
    come(first, (TUESDAY, 3, 3))
    assert compute(first, TUESDAY) == (2, 0)


def test_compaction_leaves_what_stands(first: Engine) -> None:
    rewrite_all(first, DAYS)
    come(first, (TUESDAY, 3, 3))
    assert compute(first, TUESDAY) == (1, 1)
