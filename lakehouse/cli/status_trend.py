"""`lakehouse status --trend`: rows, sizes and failed rows over time."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from lakehouse.cli.output.cell_values import columns_named, utc_seconds
from lakehouse.cli.output.printing import count, size, table
from lakehouse.cli.output.sparklines import sparkline

if TYPE_CHECKING:
    from lakehouse.cli.call_context import State
    from lakehouse.cli.table_status import TableStatus
    from lakehouse.iceberg.metadata.time_series import Series
    from lakehouse.site.table_trends import TableTrend

_INTERVALS = 24
_NUMBERS = ("rows", "size", "failed")


def read_table_trends(
    state: "State", tables: "Iterable[TableStatus]", now: datetime
) -> "dict[str, TableTrend]":
    """Return the trends of the last 90 days by table."""
    from lakehouse.project import MONITORING
    from lakehouse.site.table_trends import read_trends

    histories = [status.history for status in tables if status.history]
    return read_trends(state.engine.catalog, histories, MONITORING, now)


def trend_record(trend: "TableTrend | None") -> dict[str, Any]:
    """Return the JSON record of a trend: timestamps and values, oldest first."""
    if trend is None:
        return {"rows": [], "bytes": [], "failed_share": []}
    return {
        "rows": _points(trend.rows, int),
        "bytes": _points(trend.size_bytes, int),
        "failed_share": _points(trend.failed_share, float),
    }


def _points(series: "Series", number: type) -> list[list[Any]]:
    return [[at, number(value)] for at, value in series]


def trend_table(trends: "Mapping[str, TableTrend]") -> str:
    """Return a table with the current numbers and a sparkline of each; all have the same scale."""
    names = ("table", "rows", "rows over time", "size", "size over time")
    columns = columns_named((*names, "failed", "failed over time"), numbers=_NUMBERS)
    times = []
    for trend in trends.values():
        for series in (trend.rows, trend.size_bytes, trend.failed_share):
            times += [at for at, _ in series]
    begin, end = (min(times), max(times)) if times else (datetime.now(UTC),) * 2
    rows = [_row(name, trend, (begin, end)) for name, trend in sorted(trends.items())]
    mark = _describe_span((end - begin) / _INTERVALS)
    footer = (
        f"{count(len(rows), 'table')}, {utc_seconds(begin)} to {utc_seconds(end)};"
        f" a mark is {mark}"
    )
    return table(columns, rows, footer=footer)


def _row(name: str, trend: "TableTrend", bounds: tuple[datetime, datetime]) -> list[str]:
    from lakehouse.iceberg.metadata.time_series import values_per_interval

    rows, sizes, shares = (
        values_per_interval(series, *bounds, _INTERVALS, is_kept=is_kept)
        for series, is_kept in (
            (trend.rows, True),
            (trend.size_bytes, True),
            (trend.failed_share, False),
        )
    )
    return [
        name,
        f"{trend.rows[-1][1]:,.0f}" if trend.rows else "",
        sparkline(rows),
        size(int(trend.size_bytes[-1][1])) if trend.size_bytes else "",
        sparkline(sizes),
        f"{trend.failed_share[-1][1]:.2%}" if trend.failed_share else "",
        sparkline(shares, lowest=0.0),
    ]


def _describe_span(span: timedelta) -> str:
    hours = span / timedelta(hours=1)
    return f"{hours / 24:.1f} days" if hours >= 48 else f"{hours:.1f} hours"
