"""What was measured over weeks is read in few numbers, without a wrong one; no JVM."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from lakehouse.cli.tables.read_table_status import failed_shares, read_trends
from lakehouse.definitions import TABLES
from lakehouse.iceberg.metadata.snapshots import history_of
from lakehouse.iceberg.write.append_without_spark import append_once
from lakehouse.orchestration.deployment import open_engine
from lakehouse.quality.metrics.metric import Metric

METRICS = TABLES["monitoring.data_quality_metrics"]
NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
FAILED = "failed_fraction.not_null_id"


@pytest.fixture
def engine(settings):
    return open_engine(settings)


def measure(engine, name: str, value: float, at: datetime, table: str = "t.a") -> None:
    row = Metric(table, name, value, at).row(f"{name} {value} {at}")
    append_once(engine, METRICS, [row], row["run_id"], made_at="measured_at")


def shares(engine, table: str = "t.a"):
    return failed_shares(engine.catalog, NOW - timedelta(days=90))[table]


def test_an_hour_has_the_greatest_share_of_all_checks_but_no_anomaly(engine):
    for minute, share in enumerate([0.5, 0.0, 0.25]):
        measure(engine, FAILED, share, NOW + timedelta(minutes=minute))
    measure(engine, "failed_fraction.unique_id", 0.3, NOW - timedelta(hours=1))
    measure(engine, "failed_fraction.no_anomaly", 1.0, NOW)
    measure(engine, "null_fraction.id", 0.9, NOW)
    measure(engine, FAILED, 0.9, NOW - timedelta(days=100))

    assert shares(engine) == [(NOW - timedelta(hours=1), 0.3), (NOW, 0.5)]


@pytest.fixture
def read(engine, table_there):
    """Read the trend of a table with a failed check, and one row in its only snapshot."""
    table = engine.catalog.load(table_there)
    table.append(pa.table({"id": [1]}))
    now = datetime.now(UTC)
    measure(engine, FAILED, 0.25, now - timedelta(days=10), table_there)

    def read():
        histories = [history_of(table_there, engine.catalog.load(table_there))]
        return read_trends(engine.catalog, histories, now)[table_there]

    return read


def test_a_trend_has_the_rows_of_snapshots_and_the_shares_of_checks(read):
    trend = read()

    assert [rows for _, rows in trend.rows] == [1]
    assert [share for _, share in trend.failed_share] == [0.25]


@pytest.mark.parametrize("kind", ["*.metadata.json", "*.avro", "*.parquet"])
def test_damaged_metrics_hide_no_snapshots(read, settings, kind):
    for file in (settings.home / "warehouse" / "monitoring").rglob(kind):
        file.unlink()
    trend = read()

    assert [rows for _, rows in trend.rows] == [1]
    assert trend.failed_share == ()
