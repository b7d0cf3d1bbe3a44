"""Partitions computed from their existing and new rows, or from all rows of their sources."""

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
    def fill(engine: Engine) -> None:
        come(engine, (MONDAY, 1, 1), (TUESDAY, 2, 2))
        compute(engine, MONDAY, TUESDAY)

    return filled_engine(fill)


def come(engine: Engine, *rows: tuple[date, int, int]) -> None:
    write(engine, RAW, rows_of(engine, "d date, v int, id bigint", rows))


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
    # Not a table of `first`, since other tests restore its files.
    engine = embedded_engine
    come(engine, (MONDAY, 1, 1), (TUESDAY, 2, 2))
    compute(engine, MONDAY, TUESDAY)
    come(engine, (MONDAY, 3, 3), (TUESDAY, 4, 4), (WEDNESDAY, 5, 5))
    compute(engine, MONDAY)
    compute(engine, WEDNESDAY)
    engine.sql(
        f"CALL {engine.catalog.name}.system.expire_snapshots(table => '{DAYS.name}',"
        " older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)"
    )
    come(engine, (MONDAY, 6, 6))
    assert compute(engine, MONDAY) == (3, 0)


def delete_a_row(engine: Engine, table: IcebergTable) -> None:
    engine.sql(f"DELETE FROM {engine.catalog.sql_name(table.name)} WHERE id = 2")


STRICTER = replace(DAYS, rules=[between("v", 0, 2), *DAYS.rules[1:]])


@pytest.mark.parametrize(
    ("changed", "computed_as", "given"),
    [(RAW, DAYS, (1, 0)), (DAYS, DAYS, (2, 0)), (None, STRICTER, (2, 0))],
    ids=["source rewritten", "table written by another", "other rules"],
)
def test_a_day_is_recomputed_from_all_rows_where_its_existing_rows_are_not_known(
    first: Engine,
    changed: IcebergTable | None,
    computed_as: IcebergTable,
    given: tuple[int, int],
) -> None:
    if changed is not None:
        delete_a_row(first, changed)
    come(first, (TUESDAY, 3, 3))
    assert compute(first, TUESDAY, table=computed_as) == given


def test_compaction_leaves_what_stands(first: Engine) -> None:
    first.sql(
        f"CALL {first.catalog.name}.system.rewrite_data_files(table => '{DAYS.name}',"
        " options => map('rewrite-all', 'true'))"
    )
    come(first, (TUESDAY, 3, 3))
    assert compute(first, TUESDAY) == (1, 1)
