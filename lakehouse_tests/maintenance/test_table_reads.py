"""How often tables are read, counted from what runs recorded."""

from dataclasses import replace
from datetime import date, timedelta

import dagster as dg
import pytest

from lakehouse.assets.monitoring.data_quality_metrics import TABLE as METRICS
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.measured_health import PartitionKey
from lakehouse.iceberg.read.scanned_files import READ_SHARE
from lakehouse.iceberg.write.append_without_spark import append_once
from lakehouse.maintenance.table_reads import (
    UNRECORDED_READS_A_DAY,
    TableReads,
    count_reads,
    recent_reads,
)
from lakehouse.quality.metrics.metric import Metric
from lakehouse.quality.metrics.run_metrics import metrics_of_run, of_write
from lakehouse.runtime.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse_tests.maintenance.sick_tables import NOW

pytestmark = pytest.mark.unit

MARCH_1 = PartitionKey(0, (("day", date(2026, 3, 1)),))
MARCH_2 = PartitionKey(0, (("day", date(2026, 3, 2)),))


def row(
    table: str, value: float, partition: str | None = None, metric: str = READ_SHARE
) -> dict:
    return {"table_name": table, "metric": metric, "value": value, "partition": partition}


def test_reads_of_parts_of_a_table_add_up_to_those_of_all_of_it() -> None:
    reads = count_reads([row("silver.t", 0.5), row("silver.t", 1.0), row("silver.u", 1.0)], 3)
    assert reads.of("silver.t", MARCH_1) == pytest.approx(0.5 + UNRECORDED_READS_A_DAY)
    assert reads.of_table("silver.u") == pytest.approx(1 / 3 + UNRECORDED_READS_A_DAY)
    assert reads.of_table("silver.v") == UNRECORDED_READS_A_DAY


def test_a_run_of_one_partition_reads_that_one_and_no_other() -> None:
    reads = count_reads([row("silver.t", 0.01, "2026-03-01")] * 4, 2)
    assert reads.of("silver.t", MARCH_1) == pytest.approx(2 + UNRECORDED_READS_A_DAY)
    assert reads.of("silver.t", MARCH_2) == UNRECORDED_READS_A_DAY
    assert reads.of("silver.u", MARCH_1) == UNRECORDED_READS_A_DAY
    assert reads.of_table("silver.t") == pytest.approx(2 + UNRECORDED_READS_A_DAY)


def test_a_run_of_many_partitions_counts_by_the_share_that_it_read() -> None:
    reads = count_reads([row("silver.t", 0.5, "2026-03-01..2026-03-09")], 1)
    assert reads.of("silver.t", MARCH_2) == pytest.approx(0.5 + UNRECORDED_READS_A_DAY)


def test_other_metrics_are_no_reads() -> None:
    assert count_reads([row("silver.t", 9.0, metric="record_count")], 1) == TableReads()


def test_a_write_tells_of_each_input_how_much_of_it_was_read() -> None:
    inputs = {
        "raw": {
            "table": "bronze.raw",
            "snapshot_id": "7",
            "scanned_files": 1,
            "scanned_total_files": 4,
        },
        "keys": {"table": "bronze.keys", "snapshot_id": "8"},
        "nothing_new": {
            "table": "bronze.new",
            "snapshot_id": "9",
            "scanned_files": 0,
            "scanned_total_files": 4,
        },
    }
    materialization = dg.AssetMaterialization(
        dg.AssetKey(["silver", "t"]),
        metadata={
            "dagster/row_count": 3,
            "iceberg/inputs": inputs,
            "partitions": ["2026-03-01"],
        },
    )
    metrics = of_write(materialization, NOW, Catalog("lake", {}), {})
    reads = [metric for metric in metrics if metric.name == READ_SHARE]
    assert reads == [Metric("bronze.raw", READ_SHARE, 0.25, NOW, 7, "2026-03-01")]


def test_a_write_of_several_partitions_is_measured_once() -> None:
    scanned = {"scanned_files": 1, "scanned_total_files": 4}
    inputs = {"raw": {"table": "bronze.raw", "snapshot_id": "7", **scanned}}
    metadata = {"dagster/row_count": 3, "iceberg/inputs": inputs}

    @dg.op
    def write(context: dg.OpExecutionContext) -> None:
        for table in ("t", "t", "u"):
            key = dg.AssetKey(["silver", table])
            context.log_event(dg.AssetMaterialization(key, metadata=metadata))

    @dg.job
    def run_writes() -> None:
        write()

    with dg.DagsterInstance.ephemeral() as instance:
        run = run_writes.execute_in_process(instance=instance)
        metrics = metrics_of_run(instance, run.run_id, Catalog("lake", {}), {})
    assert [(metric.table, metric.name, metric.value) for metric in metrics] == [
        ("silver.t", "record_count", 3.0),
        ("bronze.raw", READ_SHARE, 0.25),
        ("silver.u", "record_count", 3.0),
        ("bronze.raw", READ_SHARE, 0.25),
    ]


def test_reads_of_the_last_two_weeks_are_counted(settings: Settings) -> None:
    def no_spark() -> None:
        raise AssertionError("Spark was started")

    engine = replace(open_engine(settings), session=no_spark)
    assert recent_reads(engine.catalog, METRICS.name, NOW) == TableReads()
    for days in (1, 13, 15):
        read = Metric("silver.t", READ_SHARE, 1.0, NOW - timedelta(days=days), 1)
        rows = [read.row(f"run_{days}")]
        append_once(engine, METRICS, rows, f"run_{days}", made_at="measured_at")
    reads = recent_reads(engine.catalog, METRICS.name, NOW)
    assert reads.by_table == {"silver.t": pytest.approx(2 / 14)}
