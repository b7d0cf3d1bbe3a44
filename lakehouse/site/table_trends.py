"""Tables over time, from retained snapshots and before them from the `monitoring` tables."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from lakehouse.errors import TableUnreadable
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.metadata.snapshots import History
from lakehouse.iceberg.metadata.time_series import (
    Series,
    bytes_over_time,
    continued_by,
    rows_over_time,
)
from lakehouse.quality.metrics.metric_history import MetricHistory, metric_history
from lakehouse.upkeep.health_records import size_history

T = TypeVar("T")
_WINDOW = timedelta(days=90)


@dataclass(frozen=True)
class Monitoring:
    """The names of the `monitoring` tables."""

    metrics: str
    health: str
    upkeep: str


@dataclass(frozen=True)
class TableTrend:
    """The rows and bytes of a table over time, and the share of rows, 0 to 1, that failed the
    worst check and each check.
    """

    rows: Series = ()
    size_bytes: Series = ()
    failed_share: Series = ()
    failed_by_check: Mapping[str, Series] = field(default_factory=dict)


def read_trends(
    catalog: Catalog, histories: Iterable[History], monitoring: Monitoring, now: datetime
) -> dict[str, TableTrend]:
    """Return the trends of the last 90 days by table."""
    since = now - _WINDOW
    metrics = where_readable(lambda: metric_history(catalog, monitoring.metrics, since, now))
    sizes = where_readable(lambda: size_history(catalog, monitoring.health, since))
    trends = {}
    for history in histories:
        measured = (metrics or {}).get(history.table, MetricHistory())
        measured_sizes = (sizes or {}).get(history.table, ())
        trends[history.table] = TableTrend(
            _since(since, continued_by(measured.rows, rows_over_time(history))),
            _since(since, continued_by(measured_sizes, bytes_over_time(history))),
            measured.greatest_failed_shares,
            measured.failed_shares,
        )
    return trends


def where_readable(read: Callable[[], T]) -> T | None:
    """Return the content of a `monitoring` table, or None if it is damaged: its own page shows
    that, and the other pages are still useful.
    """
    try:
        return read()
    except (TableUnreadable, OSError):
        return None


def _since(begin: datetime, series: Series) -> Series:
    """Return the points since a timestamp; the value before it applies at the beginning."""
    recent = tuple(point for point in series if point[0] >= begin)
    older = [point for point in series if point[0] < begin]
    return ((begin, older[-1][1]), *recent) if older else recent
