"""Read frequency of tables, from the metrics of runs."""

from datetime import timedelta

import dagster as dg
import pytest

from lakehouse.assets.monitoring.data_quality_metrics import TABLE as METRICS
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.read.scanned_files import READ_SHARE
from lakehouse.iceberg.write.append_without_spark import append_once
from lakehouse.quality.metrics.metric import Metric
from lakehouse.quality.metrics.run_metrics import of_write
from lakehouse.settings import Settings
from lakehouse.upkeep.table_reads import reads_a_day
from lakehouse_tests.upkeep.sick_tables import NOW
from lakehouse_tests.without_spark import engine_without_spark

pytestmark = pytest.mark.unit


def test_a_write_measures_the_share_of_each_input_that_it_read() -> None:
    def scan(files: int) -> dict[str, int]:
        return {"scanned_files": files, "scanned_total_files": 4}

    inputs = {
        "raw": {"table": "bronze.raw", "snapshot_id": "7", **scan(1)},
        "not_counted": {"table": "bronze.keys", "snapshot_id": "8"},
        "nothing_new": {"table": "bronze.new", "snapshot_id": "9", **scan(0)},
    }
    metadata = {"dagster/row_count": 3, "iceberg/inputs": inputs, "partitions": ["2026-03-01"]}
    written = dg.AssetMaterialization(dg.AssetKey(["silver", "t"]), metadata=metadata)
    metrics = of_write(written, NOW, Catalog("lake", {}), {})
    reads = [metric for metric in metrics if metric.name == READ_SHARE]
    assert reads == [Metric("bronze.raw", READ_SHARE, 0.25, NOW, 7, "2026-03-01")]


def test_reads_of_the_last_two_weeks_are_counted(settings: Settings) -> None:
    engine = engine_without_spark(settings)
    assert reads_a_day(engine.catalog, METRICS.name, NOW) == {}
    for days, share in ((1, 1.0), (13, 0.5), (15, 1.0)):
        at = NOW - timedelta(days=days)
        read = Metric("silver.t", READ_SHARE, share, at, 1).row(f"run_{days}")
        other = Metric("silver.t", "record_count", 9.0, at, 1).row(f"run_{days}")
        append_once(engine, METRICS, [read, other], f"run_{days}", made_at="measured_at")
    reads = reads_a_day(engine.catalog, METRICS.name, NOW)
    assert reads == {"silver.t": pytest.approx(1.5 / 14)}
