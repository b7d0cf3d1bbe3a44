"""A table that reads a source as it is and as it was: it follows what comes to the source."""

from collections.abc import Iterable
from datetime import date
from typing import Any

import pytest
from pyspark.sql import DataFrame

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.read.inputs import Input, as_of, incremental, latest
from lakehouse.iceberg.read.stale_partitions import stale_values
from lakehouse.iceberg.values.value_ranges import AllPartitions
from lakehouse.iceberg.values.write_context import Partitions, Run
from lakehouse.iceberg.values.write_result import Published
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Append, Column, IcebergTable, Merge, OverwritePartitions
from lakehouse_tests.conftest import whatever_the_catalog
from lakehouse_tests.iceberg.declarations import MONDAY, TUESDAY, WEDNESDAY, content, put

pytestmark = [pytest.mark.spark, whatever_the_catalog]

PRICES = IcebergTable(
    "silver.prices",
    "Prices.",
    [Column("d", "date"), Column("v", "int")],
    write=Append(once_by=()),
    partitioning=["d"],
)
CHANGES = IcebergTable(
    "gold.changes",
    "Prices, and how many there were at the end of the year.",
    [Column("d", "date"), Column("v", "int"), Column("then", "bigint")],
    write=OverwritePartitions(by="d"),
    partitioning=["d"],
)
NOW = latest(PRICES.name, by="d")
THEN = as_of(PRICES.name, tag="year_end")


@pytest.fixture
def tagged(engine: Engine) -> Engine:
    deliver(engine, (MONDAY, 1))
    name = engine.catalog.sql_name(PRICES.name)
    engine.sql(f"ALTER TABLE {name} CREATE TAG year_end")
    return engine


def deliver(engine: Engine, *rows: tuple[date, int]) -> None:
    put(engine, PRICES, rows)


def changes(now: DataFrame, then: DataFrame) -> DataFrame:
    counted = then.groupBy().count().withColumnRenamed("count", "then")
    return now.crossJoin(counted)


@pytest.mark.parametrize("names", [("now", "then"), ("then", "now")])
def test_days_that_come_are_stale_and_computed(tagged: Engine, names: Iterable[str]) -> None:
    declared = {"now": NOW, "then": THEN}
    inputs = {name: declared[name] for name in names}
    every = AllPartitions(((MONDAY, WEDNESDAY),))

    def compute(*days: Any) -> None:
        merged_ranges = tuple((day, date.fromordinal(day.toordinal() + 1)) for day in days)
        partitions = Partitions(tuple(map(str, days)), merged_ranges, every)
        run = Run(partitions=partitions, full_recompute=False)
        write(tagged, CHANGES, changes, inputs, run)

    compute(MONDAY)
    deliver(tagged, (TUESDAY, 2))
    assert stale_values(tagged, CHANGES, inputs, every) == {TUESDAY}
    compute(TUESDAY)

    assert stale_values(tagged, CHANGES, inputs, every) == set()
    assert content(tagged, CHANGES.name, "d", "v", "then") == [(MONDAY, 1, 1), (TUESDAY, 2, 1)]


@pytest.mark.parametrize("names", [("now", "then"), ("then", "now")])
def test_what_was_read_is_not_read_again(tagged: Engine, names: Iterable[str]) -> None:
    declared: dict[str, Input] = {"now": incremental(PRICES.name), "then": THEN}
    inputs = {name: declared[name] for name in names}
    merged = IcebergTable(CHANGES.name, CHANGES.comment, CHANGES.columns, write=Merge(on=["d"]))
    deliver(tagged, (TUESDAY, 2))
    write(tagged, merged, changes, inputs, Run())
    deliver(tagged, (WEDNESDAY, 3))
    outcome = write(tagged, merged, changes, inputs, Run())

    assert isinstance(outcome, Published)
    assert (outcome.pins["now"].rows, outcome.inserted_rows) == (1, 1)
