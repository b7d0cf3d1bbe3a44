"""Tables over time, from retained snapshots and before them from the `monitoring` tables."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
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
from lakehouse.project import MONITORING
from lakehouse.quality.metrics.metric import FAILED_FRACTION, NO_ANOMALY, RECORD_COUNT
from lakehouse.upkeep.health_records import size_history

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
_WINDOW = timedelta(days=90)
_EACH_MINUTE_FOR = timedelta(days=2)
"""Older values are aggregated by day, since there can be tens of thousands of runs."""
_KEYS = ["table_name", "metric", "span"]
_COLUMNS = [*_KEYS, "measured_at", "last", "greatest"]
_READ = ("table_name", "metric", "value", "measured_at")


@dataclass(frozen=True)
class TableTrend:
    """The rows and bytes of a table over time, and the share of rows, 0 to 1, that failed the
    worst check.
    """

    rows: Series = ()
    size_bytes: Series = ()
    failed_share: Series = ()


def read_trends(
    catalog: Catalog, histories: Iterable[History], now: datetime
) -> dict[str, TableTrend]:
    """Return the trends of the last 90 days by table."""
    since = now - _WINDOW
    metrics = _where_readable(lambda: metric_trends(catalog, since, now))
    sizes = _where_readable(lambda: size_history(catalog, MONITORING.health, since))
    trends = {}
    for history in histories:
        measured = metrics.get(history.table, TableTrend())
        measured_sizes = sizes.get(history.table, ())
        trends[history.table] = TableTrend(
            _since(since, continued_by(measured.rows, rows_over_time(history))),
            _since(since, continued_by(measured_sizes, bytes_over_time(history))),
            measured.failed_share,
        )
    return trends


def _where_readable(read: Callable[[], dict[str, T]]) -> dict[str, T]:
    """Return the content of a `monitoring` table; empty if it is damaged, since `status` reports
    that and the snapshots are still useful.
    """
    try:
        return read()
    except (TableUnreadable, OSError):
        return {}


def _since(begin: datetime, series: Series) -> Series:
    """Return the points since a timestamp; the value before it applies at the beginning."""
    recent = tuple(point for point in series if point[0] >= begin)
    older = [point for point in series if point[0] < begin]
    return ((begin, older[-1][1]), *recent) if older else recent


def metric_trends(catalog: Catalog, since: datetime, now: datetime) -> dict[str, TableTrend]:
    """Return metrics by table since a timestamp, with one value per day, or per minute for the
    last two days: the last row count with its time, and the largest failed share of all checks
    except the anomaly check.
    """
    if not catalog.has(MONITORING.metrics):
        return {}
    rows: dict[str, list[Point]] = {}
    shares: dict[str, dict[datetime, float]] = {}
    for row in _by_span(_measured(catalog, since), now - _EACH_MINUTE_FOR):
        table = row["table_name"]
        if row["metric"] == RECORD_COUNT:
            # At its own time, not at the start of the interval, which may precede other writes.
            rows.setdefault(table, []).append((row["measured_at"], row["last"]))
        else:
            greatest = shares.setdefault(table, {})
            greatest[row["span"]] = max(row["greatest"], greatest.get(row["span"], 0.0))
    return {
        table: TableTrend(
            rows=tuple(rows.get(table, ())),
            failed_share=tuple(sorted(shares.get(table, {}).items())),
        )
        for table in rows.keys() | shares.keys()
    }


def _measured(catalog: Catalog, since: datetime) -> "Iterator[pa.RecordBatch]":
    where = (
        f"measured_at >= '{since.isoformat()}'"
        f" AND (metric = '{RECORD_COUNT}' OR metric LIKE '{FAILED_FRACTION}.%')"
        f" AND metric != '{FAILED_FRACTION}.{NO_ANOMALY}'"
    )
    scan = catalog.load(MONITORING.metrics).scan(where, selected_fields=_READ)
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
