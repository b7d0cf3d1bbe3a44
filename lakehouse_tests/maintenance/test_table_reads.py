"""Read frequency of tables, from the metrics of runs."""

from dataclasses import replace
from datetime import timedelta

import dagster as dg
import pytest

from lakehouse.assets.monitoring.data_quality_metrics import TABLE as METRICS
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.read.scanned_files import READ_SHARE
from lakehouse.iceberg.write.append_without_spark import append_once
from lakehouse.maintenance.table_reads import reads_a_day
from lakehouse.quality.metrics.metric import Metric
from lakehouse.quality.metrics.run_metrics import metrics_of_run, of_write
from lakehouse.runtime.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse_tests.maintenance.sick_tables import NOW

pytestmark = pytest.mark.unit


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
    assert reads_a_day(engine.catalog, METRICS.name, NOW) == {}
    for days, share in ((1, 1.0), (13, 0.5), (15, 1.0)):
        at = NOW - timedelta(days=days)
        read = Metric("silver.t", READ_SHARE, share, at, 1).row(f"run_{days}")
        other = Metric("silver.t", "record_count", 9.0, at, 1).row(f"run_{days}")
        append_once(engine, METRICS, [read, other], f"run_{days}", made_at="measured_at")
    reads = reads_a_day(engine.catalog, METRICS.name, NOW)
    assert reads == {"silver.t": pytest.approx(1.5 / 14)}
