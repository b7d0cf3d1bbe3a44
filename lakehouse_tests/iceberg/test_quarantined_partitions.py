"""Which partitions refused rows lie in: told by the source that they came from, or by what was
delivered.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.evolve.planning import ensure
from lakehouse.iceberg.read.inputs import incremental, latest, versions_of
from lakehouse.iceberg.read.stale_partitions import quarantined_values
from lakehouse.iceberg.rules.rows import castable
from lakehouse.tables.table import Append, Column, IcebergTable, OverwritePartitions
from lakehouse_tests.iceberg.declarations import SOURCE

pytestmark = pytest.mark.spark

MONDAY, TUESDAY = date(2024, 1, 1), date(2024, 1, 2)
RAW = IcebergTable(
    name="bronze.raw_visits",
    comment="Visits as delivered, and the day that they were sent.",
    columns=[Column("day", "string"), Column("sent_on", "date"), *SOURCE],
    partitioning=["sent_on"],
    write=Append(),
)
PLAIN = IcebergTable(
    name="bronze.plain",
    comment="Days, and no word of where they came from.",
    columns=[Column("day", "date")],
    partitioning=["day"],
    write=Append(once_by=()),
)
VISITS = IcebergTable(
    name="silver.visits",
    comment="Visits by day.",
    columns=[Column("day", "date"), *SOURCE],
    partitioning=["days(day)"],
    write=OverwritePartitions(by="day"),
    rules=[castable("day", "date")],
)
BY_SOURCE = {"delivered": versions_of(RAW.name, by="sent_on")}


@pytest.fixture
def engine(embedded_engine: Engine) -> Engine:
    for table in (RAW, PLAIN):
        ensure(embedded_engine, table)
    return embedded_engine


def add(
    engine: Engine, table: IcebergTable, columns: Sequence[str], *rows: Sequence[Any]
) -> None:
    ensure(engine, table)
    loaded = engine.catalog.load(table.name)
    named = [dict(zip(columns, row, strict=True)) for row in rows]
    loaded.append(pa.Table.from_pylist(named, loaded.schema().as_arrow()))


def quarantine_rows(engine: Engine, *rows: tuple[str | None, str | None, int | None]) -> None:
    """Put rows into the quarantine: what was delivered as their day, their file and number."""
    assert VISITS.quarantine is not None
    stamped = [(*row, f"sha-{row[1]}" if row[1] else None, datetime.now(UTC)) for row in rows]
    columns = ("day", "_source_file", "_source_row", "_source_sha256", "_quarantined_at")
    add(engine, VISITS.quarantine, columns, *stamped)


def deliver(engine: Engine, *rows: tuple[date, str, int]) -> None:
    stamped = [(*row, f"sha-{row[1]}") for row in rows]
    add(engine, RAW, ("sent_on", "_source_file", "_source_row", "_source_sha256"), *stamped)


def test_a_row_lies_where_its_source_has_it(engine: Engine) -> None:
    deliver(engine, (MONDAY, "a", 1), (TUESDAY, "a", 2), (TUESDAY, "b", 1))
    quarantine_rows(engine, ("unreadable", "a", 1), ("2024-01-09", "a", 1))
    assert quarantined_values(engine, VISITS, BY_SOURCE) == {MONDAY}


def test_a_row_that_its_source_has_no_more_lies_where_it_was_delivered_for(
    engine: Engine,
) -> None:
    deliver(engine, (MONDAY, "a", 1))
    quarantine_rows(engine, ("2024-01-09", "a", 7), (" 2024-01-08 ", "gone", 1))
    assert quarantined_values(engine, VISITS, BY_SOURCE) == {date(2024, 1, 8), date(2024, 1, 9)}


@pytest.mark.parametrize("read", [latest, incremental])
def test_a_row_without_a_source_lies_where_it_was_delivered_for(engine: Engine, read) -> None:
    quarantine_rows(engine, ("2024-01-02", None, None), ("2024-01-02", None, None))
    assert quarantined_values(engine, VISITS, {"plain": read(PLAIN.name, by="day")}) == {
        TUESDAY
    }
