"""Read the metrics of recent weeks without Spark."""

from collections.abc import Collection
from datetime import datetime, timedelta

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.quality.anomaly.detection import WINDOW_DAYS
from lakehouse.quality.metrics.metric import Metric
from lakehouse.tables.quoting import literals

_FIELDS = ("table_name", "metric", "value", "measured_at", "snapshot_id", "partition", "run_id")


def recent_metrics(
    catalog: Catalog,
    metrics_table: str,
    tables: Collection[str],
    now: datetime,
    *,
    but_run: str,
) -> list[Metric]:
    """Return the metrics of some tables within the anomaly window, oldest first, without those
    of one run.

    Iceberg prunes files by timestamp and table name.
    """
    if not tables or not catalog.has(metrics_table):
        return []
    since = now - timedelta(days=WINDOW_DAYS + 1)
    where = (
        f"table_name IN {literals(tables)} AND measured_at >= '{since.isoformat()}'"
        f" AND run_id <> '{but_run}'"
    )
    scan = catalog.load(metrics_table).scan(where, selected_fields=_FIELDS)
    rows = scan.to_arrow().sort_by("measured_at").to_pylist()
    return [
        Metric(
            table=row["table_name"],
            name=row["metric"],
            value=row["value"],
            measured_at=row["measured_at"],
            snapshot_id=row["snapshot_id"],
            partition=row["partition"],
            run_id=row["run_id"],
        )
        for row in rows
    ]
