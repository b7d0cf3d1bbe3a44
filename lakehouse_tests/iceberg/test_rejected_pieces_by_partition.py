"""Pieces of one delivered row that lie in different partitions, and are refused by the runs that
compute these, stand in the quarantine each until its own partition has decided otherwise.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import date

import pytest
from pyspark.sql import DataFrame

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.read.inputs import latest
from lakehouse.iceberg.rules.rows import castable
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import (
    SOURCE_COLUMNS,
    Append,
    Column,
    IcebergTable,
    OverwritePartitions,
)
from lakehouse_tests.iceberg.declarations import (
    DELIVERED,
    MONDAY,
    SOURCE,
    TUESDAY,
    content,
    delivery,
    run_of,
)

pytestmark = [pytest.mark.spark, pytest.mark.long]

BOOKED = IcebergTable(
    name="silver.booked",
    comment="The pieces of what was delivered, one for each day.",
    columns=[Column("d", "date"), Column("v", "string"), *SOURCE],
    partitioning=["days(d)"],
    write=Append(),
)
HOURS = IcebergTable(
    name="silver.hours",
    comment="The hours of each day that a delivered row books.",
    columns=[Column("d", "date"), Column("v", "int"), *SOURCE],
    partitioning=["days(d)"],
    write=OverwritePartitions(by="d"),
    rules=[castable("v", "int")],
)
QUARANTINE = "silver.hours_quarantine"


def pieces(delivered: DataFrame) -> DataFrame:
    """Split `monday=x tuesday=y` into a row for each day."""
    rows = delivered.selectExpr("explode(split(id, ' ')) AS piece", *SOURCE_COLUMNS)
    day, hours = "CAST(split(piece, '=')[0] AS date) AS d", "split(piece, '=')[1] AS v"
    return rows.selectExpr(day, hours, *SOURCE_COLUMNS)


@pytest.fixture
def booked(filled_engine: Callable[..., Engine]) -> Engine:
    """An engine with two delivered rows, each of which books both days; all but an hour of the
    second are no number.
    """
    rows = [(f"{MONDAY}=x {TUESDAY}=y", "ann"), (f"{MONDAY}=z {TUESDAY}=2", "bob")]

    def fill(engine: Engine) -> None:
        write(engine, DELIVERED, delivery(engine, "a", rows))
        write(engine, BOOKED, pieces, {"delivered": latest(DELIVERED.name)})

    return filled_engine(fill)


@pytest.fixture
def compute(booked: Engine) -> Callable[..., None]:
    """Computes a day from its rows; `corrected` has what some of them are now."""

    def of_day(day: date, **corrected: str) -> None:
        def hours(rows: DataFrame) -> DataFrame:
            mine = rows.where(f"d = '{day}'")
            return mine.replace(corrected, subset=["v"]) if corrected else mine

        source = latest(BOOKED.name, by="d")
        write(booked, HOURS, hours, {"rows": source}, replace(run_of(day), run_id=f"{day}"))

    return of_day


def held(engine: Engine) -> list[tuple]:
    return content(engine, QUARANTINE, "v", "d", "_source_row")


X, Y, Z = ("x", str(MONDAY), 1), ("y", str(TUESDAY), 1), ("z", str(MONDAY), 2)


def test_each_partitions_rejected_piece_is_held(
    booked: Engine, compute: Callable[..., None]
) -> None:
    compute(MONDAY)
    compute(TUESDAY)
    assert held(booked) == [X, Y, Z]
    compute(MONDAY)
    assert held(booked) == [X, Y, Z]


def test_a_piece_leaves_with_its_own_partition(
    booked: Engine, compute: Callable[..., None]
) -> None:
    compute(MONDAY)
    compute(TUESDAY)
    compute(TUESDAY, y="5")
    assert held(booked) == [X, Z]
    compute(MONDAY, x="5")
    assert held(booked) == [Z]
    assert content(booked, HOURS.name, "v") == [(2,), (5,), (5,)]
