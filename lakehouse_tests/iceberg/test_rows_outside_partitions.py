"""Rows that belong to no partition of the table that is computed from them: kept in its
quarantine, or said.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.inputs import latest
from lakehouse.iceberg.read.rows_outside_partitions import evaluate_by_metadata
from lakehouse.iceberg.read.stale_partitions import stale_values
from lakehouse.iceberg.rules.rows import between
from lakehouse.iceberg.values.value_ranges import AllPartitions, Bound, ValueRange
from lakehouse.iceberg.values.write_context import Partitions, Run
from lakehouse.iceberg.values.write_result import Outcome, Published
from lakehouse.iceberg.write.quarantine_writes import rows_without_partition
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.orchestration.asset_checks import Evaluated, check_result
from lakehouse.tables.table import Append, Column, IcebergTable, OverwritePartitions
from lakehouse_tests.examples import repeated
from lakehouse_tests.iceberg.declarations import (
    MONDAY,
    SOURCE,
    TUESDAY,
    WEDNESDAY,
    content,
    put,
)

pytestmark = pytest.mark.spark

RAW = IcebergTable(
    name="bronze.days",
    comment="Numbers as they came.",
    columns=[Column("said", "string"), Column("d", "date"), Column("v", "int"), *SOURCE],
    partitioning=["d"],
    write=Append(),
)
DAYS = IcebergTable(
    name="silver.days",
    comment="Numbers by day.",
    columns=[Column("d", "date"), Column("v", "int"), *SOURCE],
    partitioning=["d"],
    write=OverwritePartitions(by="d"),
    rules=[between("v", 0, 100)],
)
LATEST = {"raw": latest(RAW.name, by="d")}
TWO_DAYS: ValueRange = (MONDAY, WEDNESDAY)
FAR = date(2099, 1, 1)


def deliver(engine: Engine, file: str, *rows: tuple[date | None, int]) -> None:
    stamped = [
        (str(day), day, v, file, f"sha-{file}", at) for at, (day, v) in enumerate(rows, 1)
    ]
    put(engine, RAW, stamped)


def compute(engine: Engine, *days: date, table: IcebergTable = DAYS) -> Outcome:
    """Compute some days as a run does that catches up."""
    run = Run(partitions=partitions_of(days), full_recompute=False)
    return write(engine, table, lambda raw: raw.drop("said"), LATEST, run)


def partitions_of(days: Sequence[date]) -> Partitions:
    ranges = tuple((day, date.fromordinal(day.toordinal() + 1)) for day in days)
    return Partitions(tuple(map(str, days)), ranges, AllPartitions((TWO_DAYS,)))


def held(engine: Engine) -> list[tuple]:
    """The rows in quarantine, and why."""
    rows = content(
        engine, "silver.days_quarantine", "v", "d", "_source_file", "array_join(_reasons, ',')"
    )
    return sorted(rows)


def table_rows(engine: Engine) -> list[tuple]:
    return content(engine, DAYS.name, "d", "v")


@pytest.mark.long
def test_rows_of_no_partition_are_quarantined_under_a_reason_of_their_own(embedded_engine):
    deliver(
        embedded_engine,
        "a",
        (MONDAY, 1),
        (None, 2),
        (date(2009, 1, 1), 3),
        (FAR, 4),
        (MONDAY, 500),
    )
    outcome = compute(embedded_engine, MONDAY)

    assert isinstance(outcome, Published)
    assert table_rows(embedded_engine) == [(MONDAY, 1)]
    assert held(embedded_engine) == [
        ("2", None, "a", "has_partition"),
        ("3", "2009-01-01", "a", "has_partition"),
        ("4", "2099-01-01", "a", "has_partition"),
        ("500", "2024-01-01", "a", "between_v"),
    ]
    assert (outcome.quarantined.rows, outcome.quarantined.new_rows) == (4, 4)
    (said,) = [result for result in outcome.results if result.rule.name == "has_partition"]
    assert (said.failed_rows, said.total_rows, said.level) == (3, 5, "warns")
    assert {str(row["d"]) for row in said.sample} == {"None", "2009-01-01", "2099-01-01"}
    assert stale_values(embedded_engine, DAYS, LATEST, partitions_of([]).every) == set()


@pytest.mark.long
def test_rows_that_a_run_has_seen_to_are_told_of_by_metadata_alone(embedded_engine):
    deliver(embedded_engine, "a", (MONDAY, 1), (None, 2), (FAR, 3))
    compute(embedded_engine, MONDAY)
    before = read_history(embedded_engine, "silver.days_quarantine").main.snapshot_id
    deliver(embedded_engine, "b", (TUESDAY, 5))
    (said,) = [
        r for r in compute(embedded_engine, TUESDAY).results if r.rule.name == "has_partition"
    ]
    assert (said.failed_rows, said.sample) == (2, ())
    assert read_history(embedded_engine, "silver.days_quarantine").main.snapshot_id == before


@pytest.mark.long
def test_without_a_quarantine_a_check_fails_until_such_rows_are_gone(embedded_engine):
    days = replace(DAYS, rules=[])

    def check() -> tuple[bool, str, int]:
        every = partitions_of([]).every
        (result,) = evaluate_by_metadata(embedded_engine, days, LATEST, every)
        found = check_result(days, result, Evaluated("main", 1))
        return found.passed, found.severity.value, result.failed_rows

    deliver(embedded_engine, "a", (MONDAY, 1), (None, 2))
    compute(embedded_engine, MONDAY, table=days)
    assert table_rows(embedded_engine) == [(MONDAY, 1)]
    assert check() == (False, "ERROR", 1)

    raw = embedded_engine.catalog.sql_name(RAW.name)
    embedded_engine.sql(f"DELETE FROM {raw} WHERE d IS NULL")
    compute(embedded_engine, MONDAY, table=days)
    assert check() == (True, "ERROR", 0)


def test_a_row_without_partition_has_what_was_delivered_in_renamed_columns(spark):
    columns = [Column("d", "date"), Column("value", "int", renamed_from="v")]
    table = replace(DAYS, columns=[*columns, *SOURCE], rules=[between("value", 0, 100)])
    rows = spark.sql(
        "SELECT CAST(NULL AS date) AS d, '1.004,50' AS v, 'a' AS _source_file, 'sha' AS"
        " _source_sha256, 7L AS _source_row"
    )

    (held,) = rows_without_partition(table, rows, "d").collect()
    assert (held["value"], held["_source_row"]) == ("1.004,50", 7)


@pytest.mark.long
@pytest.mark.parametrize("kind", repeated(["date", "timestamp"], tried=["timestamp"]))
def test_a_row_whose_day_became_a_partition_stands_in_the_quarantine_until_that_is_computed(
    embedded_engine: Engine, kind: str
) -> None:
    def typed(table: IcebergTable, partitioning: str) -> IcebergTable:
        columns = [replace(one, type=kind) if one.name == "d" else one for one in table.columns]
        return replace(table, columns=columns, partitioning=[partitioning])

    def bound(day: date) -> Bound:
        return day if kind == "date" else datetime.combine(day, time(), UTC)

    def compute_day(day: date, end: date) -> None:
        """Compute a day as of when partitions end somewhere."""
        span = (bound(day), bound(day + timedelta(days=1)))
        every = AllPartitions(((bound(MONDAY), bound(end)),))
        run = Run(partitions=Partitions((str(day),), (span,), every), full_recompute=False)
        write(embedded_engine, days, lambda raw: raw.drop("said"), LATEST, run)

    raw, days = typed(RAW, "days(d)"), typed(DAYS, "days(d)")

    def deliver_day(day: date, v: int) -> None:
        moment = datetime.combine(day, time(10, 15), UTC)
        value = day if kind == "date" else moment
        rows = [(str(value), value, v, f"file {v}", f"sha {v}", 1)]
        put(embedded_engine, raw, rows)

    for number, day in enumerate((MONDAY, TUESDAY, WEDNESDAY), 1):
        deliver_day(day, number)
    end = WEDNESDAY + timedelta(days=1)
    compute_day(MONDAY, WEDNESDAY)
    compute_day(TUESDAY, WEDNESDAY)
    in_quarantine = [content(embedded_engine, "silver.days_quarantine", "v")]
    deliver_day(MONDAY, 4)
    compute_day(MONDAY, end)
    in_quarantine.append(content(embedded_engine, "silver.days_quarantine", "v"))
    compute_day(WEDNESDAY, end)

    assert in_quarantine == [[("3",)], [("3",)]]
    assert content(embedded_engine, "silver.days_quarantine", "v") == []
    assert content(embedded_engine, days.name, "v") == [(1,), (2,), (3,), (4,)]
