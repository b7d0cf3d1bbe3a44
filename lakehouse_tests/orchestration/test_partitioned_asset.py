"""A partitioned table as an asset: its run replaces, audits and shows the partitions."""

from datetime import date

import dagster as dg
import pytest

from lakehouse.iceberg.rules.rows import between
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.tables.table import Column, IcebergTable, OverwritePartitions

KEY = dg.AssetKey(["silver", "days"])
DAYS = dg.DailyPartitionsDefinition("2024-01-01", end_date="2024-01-05")
TABLE = IcebergTable(
    "silver.days",
    "Numbers by day.",
    [Column("day", "date"), Column("v", "int")],
    partitioning=["days(day)"],
    write=OverwritePartitions(by="day"),
    rules=[between("v", 0, 100, on_failure="block")],
)


@pytest.fixture
def days(embedded_engine):
    def make(v=1, shift=0):
        @iceberg_asset(TABLE, partitions_def=DAYS)
        def compute():
            return embedded_engine.sql(
                f"SELECT date_add(DATE '2024-01-01', CAST(id AS INT) + {shift}) AS day, {v} AS"
                " v FROM range(2)"
            )

        return compute

    return make


def stored(engine):
    found = engine.sql(
        f"SELECT day, v FROM {engine.catalog.sql_name('silver.days')} ORDER BY day"
    )
    return [tuple(row) for row in found.collect()]


def test_a_range_replaces_its_days_in_one_run(build, days, embedded_engine, instance):
    build(days(v=1), partition=("2024-01-01", "2024-01-02"))
    result = build(days(v=2), partition=("2024-01-01", "2024-01-02"))

    assert result.success, result.messages
    assert stored(embedded_engine) == [(date(2024, 1, 1), 2), (date(2024, 1, 2), 2)]
    assert instance.get_materialized_partitions(KEY) == {"2024-01-01", "2024-01-02"}


def test_each_partition_of_a_range_is_shown_with_its_own_rows(build, embedded_engine, instance):
    @iceberg_asset(TABLE, partitions_def=DAYS)
    def compute():
        rows = "VALUES (DATE '2024-01-01', 1), (DATE '2024-01-03', 2), (DATE '2024-01-03', 3)"
        return embedded_engine.sql(f"SELECT * FROM ({rows}) AS rows (day, v)")

    build(compute, partition=("2024-01-01", "2024-01-03"))

    events = instance.fetch_materializations(KEY, limit=10).records
    shown = {event.partition_key: event.asset_materialization.metadata for event in events}
    assert {
        key: metadata["dagster/partition_row_count"].value for key, metadata in shown.items()
    } == {"2024-01-01": 1, "2024-01-02": 0, "2024-01-03": 2}


def test_checks_say_which_partitions_they_evaluated(build, days):
    result = build(days(), partition=("2024-01-01", "2024-01-02"))

    assert {check.name for check in result.checks} == {"between_v", "in_partitions"}
    assert all(
        check.metadata["partitions"] == ["2024-01-01", "2024-01-02"] for check in result.checks
    )


def test_rows_outside_the_partitions_of_the_run_are_blocked_by_a_check(
    build, days, embedded_engine
):
    result = build(days(shift=1), partition=("2024-01-01", "2024-01-02"))

    assert not result.success
    failed = [check for check in result.checks if not check.passed]
    assert [
        (check.name, check.severity, check.metadata["failed_rows"]) for check in failed
    ] == [("in_partitions", "ERROR", 1)]
    assert stored(embedded_engine) == []


def test_checks_alone_look_at_the_partitions_of_the_run(build, days):
    build(days(), partition=("2024-01-01", "2024-01-02"))
    result = build(
        days(), selection=dg.AssetSelection.checks_for_assets(KEY), partition="2024-01-02"
    )

    assert result.success, result.messages
    (check,) = [check for check in result.checks if check.name == "between_v"]
    assert (check.metadata["total_rows"], check.metadata["partitions"]) == (1, ["2024-01-02"])
