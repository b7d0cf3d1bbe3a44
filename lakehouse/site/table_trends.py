"""Tables over time, from retained snapshots and before them from the `monitoring` tables."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from lakehouse.errors import TableUnreadable
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.metadata.snapshots import History
from lakehouse.iceberg.metadata.time_series import (
    Point,
    Series,
    bytes_over_time,
    continued_by,
    rows_over_time,
)
from lakehouse.quality.metrics.metric import FAILED_FRACTION, NO_ANOMALY, RECORD_COUNT
from lakehouse.upkeep.health_records import size_history

if TYPE_CHECKING:
    import pyarrow as pa


_PREFIX = f"{FAILED_FRACTION}."
_EACH_MINUTE_FOR = timedelta(days=2)
"""Older values are aggregated by day, since a plot cannot show tens of thousands of runs."""
_KEYS = ["table_name", "metric", "span"]
_COLUMNS = [*_KEYS, "measured_at", "last", "greatest"]
_READ = ("table_name", "metric", "value", "measured_at")


@dataclass
class MetricHistory:
    """The row count of a table after each write, and the failed share by check, 0 to 1."""

    rows: Series = ()
    failed_shares: Mapping[str, Series] = field(default_factory=dict)

    @property
    def greatest_failed_shares(self) -> Series:
        """The largest failed share by timestamp, without the anomaly check."""
        greatest: dict[datetime, float] = {}
        for check, series in self.failed_shares.items():
            if check == NO_ANOMALY:
                continue
            for at, share in series:
                greatest[at] = max(share, greatest.get(at, 0.0))
        return tuple(sorted(greatest.items()))


def metric_history(
    catalog: Catalog, metrics_table: str, since: datetime, now: datetime
) -> dict[str, MetricHistory]:
    """Return metrics by table since a timestamp, with one value per day, or per minute for the
    last two days: the last row count with its time, and the largest failed share.

    :param metrics_table: `monitoring.data_quality_metrics`; the result is empty if it does not
        exist.
    """
    if not catalog.has(metrics_table):
        return {}
    points: dict[str, dict[str, list[Point]]] = {}
    measured = _measured(catalog, metrics_table, since)
    for row in _by_span(measured, now - _EACH_MINUTE_FOR):
        if row["metric"] == RECORD_COUNT:
            # At its own time, not at the start of the interval, which may precede other writes.
            point = (row["measured_at"], row["last"])
        else:
            point = (row["span"], row["greatest"])
        points.setdefault(row["table_name"], {}).setdefault(row["metric"], []).append(point)
    return {table: _history(metrics) for table, metrics in points.items()}


def _measured(
    catalog: Catalog, metrics_table: str, since: datetime
) -> "Iterator[pa.RecordBatch]":
    where = (
        f"measured_at >= '{since.isoformat()}'"
        f" AND (metric = '{RECORD_COUNT}' OR metric LIKE '{_PREFIX}%')"
    )
    scan = catalog.load(metrics_table).scan(where, selected_fields=_READ)
    yield from scan.to_arrow_batch_reader()


def _by_span(
    batches: "Iterable[pa.RecordBatch]", by_day_until: datetime
) -> "list[dict[str, Any]]":
    """Return the last and the largest value of each metric, table and interval. Batches are
    reduced one at a time, since all metrics may not fit into memory.
    """
    import pyarrow as pa

    parts = [_reduced(_with_span(batch, by_day_until)) for batch in batches]
    if not parts:
        return []
    reduced = _reduced(pa.concat_tables(parts))
    rows: list[dict[str, Any]] = reduced.sort_by(
        [(key, "ascending") for key in _KEYS]
    ).to_pylist()
    return rows


def _with_span(batch: "pa.RecordBatch", by_day_until: datetime) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.compute as pc

    timestamps, values = batch.column("measured_at"), batch.column("value")
    is_old = pc.less(timestamps, pa.scalar(by_day_until, timestamps.type))
    days, minutes = (pc.floor_temporal(timestamps, unit=unit) for unit in ("day", "minute"))
    columns = [
        batch.column("table_name"),
        batch.column("metric"),
        pc.if_else(is_old, days, minutes),
        timestamps,
        values,
        values,
    ]
    return pa.table(columns, names=_COLUMNS)


def _reduced(measured: "pa.Table") -> "pa.Table":
    ordered = measured.sort_by("measured_at")
    grouped = ordered.group_by(_KEYS, use_threads=False)
    values = grouped.aggregate([("measured_at", "max"), ("last", "last"), ("greatest", "max")])
    return values.rename_columns(_COLUMNS)


def _history(metrics: Mapping[str, list[Point]]) -> MetricHistory:
    shares = {}
    for name, points in metrics.items():
        if name.startswith(_PREFIX):
            shares[name.removeprefix(_PREFIX)] = tuple(points)
    return MetricHistory(tuple(metrics.get(RECORD_COUNT, ())), shares)


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
