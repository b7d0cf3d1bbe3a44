"""Tables over time, from retained snapshots and the metrics of checks."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from lakehouse.errors import TableUnreadable
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.metadata.snapshots import History
from lakehouse.iceberg.metadata.time_series import (
    Point,
    Series,
    bytes_over_time,
    rows_over_time,
)
from lakehouse.project import MONITORING
from lakehouse.quality.metrics.metric import FAILED_FRACTION, NO_ANOMALY

_WINDOW = timedelta(days=90)


@dataclass(frozen=True)
class TableTrend:
    """The rows and bytes of a table over time, and the share of rows, 0 to 1, that failed the
    worst check.
    """

    rows: Series
    size_bytes: Series
    failed_share: Series


def read_trends(
    catalog: Catalog, histories: Iterable[History], now: datetime
) -> dict[str, TableTrend]:
    """Return the trends by table: of retained snapshots, and of checks of the last 90 days."""
    try:
        shares = failed_shares(catalog, now - _WINDOW)
    except (TableUnreadable, OSError):
        # `status` reports the damage, and the snapshots are still useful.
        shares = {}
    return {
        history.table: TableTrend(
            rows_over_time(history),
            bytes_over_time(history),
            tuple(shares.get(history.table, ())),
        )
        for history in histories
    }


def failed_shares(catalog: Catalog, since: datetime) -> dict[str, list[Point]]:
    """Return by table the largest failed share of each hour, of all checks except the anomaly
    check.
    """
    import pyarrow.compute as pc

    if not catalog.has(MONITORING.metrics):
        return {}
    where = (
        f"measured_at >= '{since.isoformat()}' AND metric LIKE '{FAILED_FRACTION}.%'"
        f" AND metric != '{FAILED_FRACTION}.{NO_ANOMALY}'"
    )
    fields = ("table_name", "metric", "value", "measured_at")
    measured = catalog.load(MONITORING.metrics).scan(where, selected_fields=fields).to_arrow()
    hours = pc.floor_temporal(measured["measured_at"], unit="hour")
    grouped = measured.append_column("hour", hours).group_by(["table_name", "hour"])
    shares: dict[str, list[Point]] = {}
    for row in grouped.aggregate([("value", "max")]).sort_by("hour").to_pylist():
        shares.setdefault(row["table_name"], []).append((row["hour"], row["value_max"]))
    return shares
