"""What was measured over weeks is read in few numbers, without a wrong one; no JVM."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from lakehouse.cli.tables.table_trends import metric_trends, read_trends
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


def history(engine, table: str = "t.a"):
    since = NOW - timedelta(days=90)
    return metric_trends(engine.catalog, since, NOW)[table]


def test_of_an_old_day_the_last_count_and_the_greatest_share_stay(engine):
    day = NOW - timedelta(days=10)
    for hour, (rows, share) in enumerate([(5, 0.5), (9, 0.0), (7, 0.25)]):
        measure(engine, "record_count", rows, day + timedelta(hours=hour))
        measure(engine, FAILED, share, day + timedelta(hours=hour))
    trend = history(engine)

    midnight = day.replace(hour=0)
    assert trend.rows == ((day + timedelta(hours=2), 7.0),)
    assert trend.failed_share == ((midnight, 0.5),)


def test_a_count_stands_at_the_moment_of_its_write(engine):
    at = NOW - timedelta(seconds=20)
    for before, rows in ((10, 180.0), (0, 181.0)):
        measure(engine, "record_count", rows, at - timedelta(seconds=before))

    assert history(engine).rows == ((at, 181.0),)


def test_the_greatest_of_all_checks_counts_but_no_anomaly(engine):
    at = NOW - timedelta(minutes=1)
    measure(engine, FAILED, 0.1, at)
    measure(engine, "failed_fraction.unique_id", 0.3, at)
    measure(engine, "failed_fraction.no_anomaly", 1.0, at)

    assert history(engine).failed_share == ((at, 0.3),)


def test_what_is_older_than_the_window_or_of_another_kind_is_left_out(engine):
    measure(engine, "record_count", 1, NOW - timedelta(days=100))
    measure(engine, "null_fraction.id", 0.5, NOW)
    measure(engine, "record_count", 2, NOW)

    assert history(engine).rows == ((NOW, 2.0),)


@pytest.fixture
def read(engine, table_there):
    """Read the trend of a table with a measured row count, and one row in its only snapshot."""
    table = engine.catalog.load(table_there)
    table.append(pa.table({"id": [1]}))
    now = datetime.now(UTC)
    measure(engine, "record_count", 90, now - timedelta(days=10), table_there)
    measure(engine, FAILED, 0.25, now - timedelta(days=10), table_there)

    def read():
        histories = [history_of(table_there, engine.catalog.load(table_there))]
        return read_trends(engine.catalog, histories, now)[table_there]

    return read


def test_snapshots_continue_the_measured_rows(read):
    trend = read()

    assert [rows for _, rows in trend.rows] == [90, 1]
    assert [share for _, share in trend.failed_share] == [0.25]


@pytest.mark.parametrize("kind", ["*.metadata.json", "*.avro", "*.parquet"])
def test_damaged_metrics_hide_no_snapshots(read, settings, kind):
    for file in (settings.home / "warehouse" / "monitoring").rglob(kind):
        file.unlink()
    trend = read()

    assert [rows for _, rows in trend.rows] == [1]
    assert trend.failed_share == ()
