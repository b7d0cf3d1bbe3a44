"""How tables changed over time: from their snapshots as far as those are kept, and before that
from what runs and upkeep measured.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from lakehouse.errors import TableUnreadable
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.history import History
from lakehouse.iceberg.metadata.time_series import (
    Series,
    bytes_over_time,
    continued_by,
    rows_over_time,
)
from lakehouse.quality.metrics.metric_history import MetricHistory, metric_history
from lakehouse.upkeep.health_records import size_history

T = TypeVar("T")
WINDOW = timedelta(days=90)
"""How far back is looked."""


@dataclass(frozen=True)
class Monitoring:
    """The names of the tables that the past is kept in."""

    metrics: str
    health: str
    upkeep: str


@dataclass(frozen=True)
class TableTrend:
    """A table's rows, the bytes of its files, and the share of rows that failed its checks, 0 to
    1: the greatest of each moment, and by check.
    """

    rows: Series = ()
    size_bytes: Series = ()
    failed_share: Series = ()
    failed_by_check: Mapping[str, Series] = field(default_factory=dict)


def read_trends(
    catalog: Catalog, histories: Iterable[History], monitoring: Monitoring, now: datetime
) -> dict[str, TableTrend]:
    """Return by table how it changed in the last 90 days.

    :param histories: of the tables that are there.
    """
    since = now - WINDOW
    measured = where_readable(lambda: metric_history(catalog, monitoring.metrics, since, now))
    sizes = where_readable(lambda: size_history(catalog, monitoring.health, since))
    trends = {}
    for history in histories:
        known = (measured or {}).get(history.table, MetricHistory())
        before = (sizes or {}).get(history.table, ())
        trends[history.table] = TableTrend(
            _since(since, continued_by(known.rows, rows_over_time(history))),
            _since(since, continued_by(before, bytes_over_time(history))),
            known.greatest_failed_shares,
            known.failed_shares,
        )
    return trends


def where_readable(read: Callable[[], T]) -> T | None:
    """Return what a table of `monitoring` tells; None where it is damaged, which its own page and
    `lakehouse status` say: the other tables are wanted all the same.
    """
    try:
        return read()
    except (TableUnreadable, OSError):
        return None


def _since(begin: datetime, series: Series) -> Series:
    """Return what is of a time, and the last before it, which holds at its begin."""
    recent = tuple(point for point in series if point[0] >= begin)
    older = [point for point in series if point[0] < begin]
    return ((begin, older[-1][1]), *recent) if older else recent
