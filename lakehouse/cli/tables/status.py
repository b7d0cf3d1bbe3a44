"""`lakehouse status`: lists the tables and their states; no JVM."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.cell_values import columns_named, utc_seconds
from lakehouse.cli.output.printing import complain, conclude, count, printable, table
from lakehouse.cli.output.record_output import print_records, table_or_json
from lakehouse.cli.output.table_layout import terminal_width, wrap
from lakehouse.storage.byte_sizes import size_text

if TYPE_CHECKING:
    from lakehouse.alerts.incidents import Incident
    from lakehouse.cli.tables.read_table_status import TableStatus
    from lakehouse.cli.tables.table_trends import TableTrend
    from lakehouse.site.read_feeds import FeedWarnings


BLOCKS = "▁▂▃▄▅▆▇█"
_NO_VALUE = "·"
"""Not a space, which would allow a line break."""


def sparkline(values: Sequence[float | None], *, lowest: float | None = None) -> str:
    """Return one character per value, scaled from `lowest` or the minimum to the maximum."""
    known = [value for value in values if value is not None]
    if not known:
        return ""
    low = min(known) if lowest is None else lowest
    high = max(known)

    def block(value: float) -> str:
        if high <= low:
            return BLOCKS[0 if lowest is not None else len(BLOCKS) // 2]
        level = int((value - low) / (high - low) * len(BLOCKS))
        return BLOCKS[min(level, len(BLOCKS) - 1)]

    return "".join(_NO_VALUE if value is None else block(value) for value in values)


_INTERVALS = 24
_NUMBERS = ("rows", "size", "failed")


def trend_record(trend: "TableTrend | None") -> dict[str, Any]:
    """Return the JSON record of a trend: timestamps and values, oldest first."""
    if trend is None:
        return {"rows": [], "bytes": [], "failed_share": []}
    return {
        "rows": [[at, int(value)] for at, value in trend.rows],
        "bytes": [[at, int(value)] for at, value in trend.size_bytes],
        "failed_share": [[at, float(value)] for at, value in trend.failed_share],
    }


def trend_table(trends: "Mapping[str, TableTrend]") -> str:
    """Return a table with the current numbers and a sparkline of each; all have the same scale."""
    from lakehouse.tables.upkeep import duration_text

    names = ("table", "rows", "rows over time", "size", "size over time")
    columns = columns_named((*names, "failed", "failed over time"), numbers=_NUMBERS)
    times = []
    for trend in trends.values():
        for series in (trend.rows, trend.size_bytes, trend.failed_share):
            times += [at for at, _ in series]
    begin, end = (min(times), max(times)) if times else (datetime.now(UTC),) * 2
    rows = [_row(name, trend, (begin, end)) for name, trend in sorted(trends.items())]
    mark = duration_text((end - begin) / _INTERVALS)
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
        size_text(int(trend.size_bytes[-1][1])) if trend.size_bytes else "",
        sparkline(sizes),
        f"{trend.failed_share[-1][1]:.2%}" if trend.failed_share else "",
        sparkline(shares, lowest=0.0),
    ]


_WIDTH = 120
"""Output width without a terminal."""


@command("status")
@click.option("--trend", is_flag=True, help="Show trends instead.")
@table_or_json
def status(state: State, trend: bool, form: str) -> None:
    """List the tables and their states, the worst first.

    States: damaged, blocked (a run was blocked, and a new run would be too), failed (its last run
    or a check), error (another open incident), late, not read, stale (a source has new data), not
    there, or ok, which is left empty. Rows of older code are shown too.

    Below the table: failed checks and warnings, quarantined rows, needless files, pending changes,
    feeds with rejected files or a stopped sensor, and open incidents. JSON has more.

    --trend shows rows, sizes, and the highest share of rows that failed a check, as one character
    per interval of up to 90 days; JSON has the numbers.
    """
    with state.progress("Reading the tables' metadata"):
        tables, feeds = _read_tables(state)
    if trend:
        _print_trends(state, tables, form)
        return
    incidents = _open_incidents(state)
    if form == "json":
        warnings: dict[str, list[str]] = {}
        for feed in state.feeds.values():
            warnings.setdefault(feed.table, []).extend(feeds[feed.name])
        print_records(_status_record(one, warnings.get(one.table, [])) for one in tables)
    else:
        click.echo(_status_table(tables))
        for line in _notes(tables, feeds):
            click.echo("\n  ".join(wrap(printable(line), (terminal_width() or _WIDTH) - 2)))
        for incident in incidents:
            click.echo(_incident_line(incident))
        if incidents:
            click.echo(
                f"{count(len(incidents), 'incident')} open; `lakehouse alerts --open` lists the"
                " alerts."
            )
    for table_status in tables:
        if table_status.unsupported:
            complain(f"Not read: {table_status.unsupported}")
    damage = [table_status.damage for table_status in tables if table_status.damage]
    conclude((), damage, success=not damage)


def _print_trends(state: State, tables: "Sequence[TableStatus]", form: str) -> None:
    from lakehouse.cli.tables.table_trends import read_trends

    histories = [status.history for status in tables if status.history]
    with state.progress("Reading what was measured"):
        trends = read_trends(state.engine.catalog, histories, datetime.now(UTC))
    if form == "json":
        print_records(
            {"table": status.table, **trend_record(trends.get(status.table))}
            for status in tables
        )
    else:
        click.echo(trend_table(trends))


def _read_tables(state: State) -> "tuple[Sequence[TableStatus], FeedWarnings]":
    """Return the statuses of the tables, and the warnings of each feed by its name."""
    from lakehouse.alerts.table_states import TableStates
    from lakehouse.cli.tables.read_table_status import (
        last_checks,
        table_statuses,
        with_code,
        with_conditions,
        with_upkeep,
    )
    from lakehouse.orchestration.runs.instance import open_instance
    from lakehouse.site.read_feeds import feed_warnings
    from lakehouse.upkeep.upkeep_run import with_cached_locations

    upkept, now = state.project.upkept(), datetime.now(UTC)
    engine = with_cached_locations(state.engine, upkept)
    graph, catalog, declared = state.project.graph, engine.catalog, state.declared
    settings, feeds = state.settings, state.feeds.values()
    # Do not create an instance: there is none before the first run.
    has_instance = settings.dagster_home.exists()
    with open_instance(settings) if has_instance else nullcontext() as instance:
        tables = table_statuses(catalog, declared, last_checks(instance, graph, declared))
        histories = {status.table: status.history for status in tables if status.history}
        incidents = _open_incidents(state)
        states = TableStates(graph, instance, declared, feeds, histories, incidents, now)
        tables = with_conditions(tables, states)
        warnings = feed_warnings(settings, feeds, instance)
    tables = with_code(tables, catalog, declared, graph)
    return with_upkeep(tables, engine, upkept, now), warnings


def _open_incidents(state: State) -> "list[Incident]":
    """Return the open incidents, the errors and the oldest first."""
    from lakehouse.alerts.alert_state import read_state

    incidents = read_state(state.settings).open.values()
    return sorted(incidents, key=lambda one: (one.firing.severity, one.opened_at))


def _status_record(status: "TableStatus", feed_warnings: list[str]) -> dict[str, Any]:
    condition = status.condition
    return {
        "table": status.table,
        "state": status.worst_state,
        "declared": status.declared,
        "exists": status.exists,
        "rows": status.rows,
        "snapshots": status.snapshots,
        "files": status.files,
        "bytes": status.size_bytes,
        "last_write": status.written_at,
        "last_write_kind": status.kind,
        "checks_passed": status.checks.passed,
        "checks_warned": list(status.checks.warned),
        "checks_failed": list(status.checks.failed),
        "quarantined_rows": status.quarantined,
        "stale": condition.is_stale,
        "refused_by": condition.blocked_by or None,
        "failed_run": condition.failed_run or None,
        "code": status.code_state,
        "older_partitions": len(status.code.older_partitions) if status.code else None,
        "small_files": status.small_files,
        "delete_files": status.delete_files,
        "upkeep": status.upkeep or None,
        "open_alerts": [incident.firing.title for incident in condition.incidents],
        "feed_warnings": feed_warnings,
        "pending": list(status.pending),
        "damage": status.damage or None,
        "unsupported": status.unsupported or None,
    }


def _status_table(tables: "Sequence[TableStatus]") -> str:
    names = ("table", "state", "rows", "size", "last write", "checks")
    columns = columns_named(names, numbers=("rows", "size"))
    width = terminal_width() or _WIDTH
    return table(columns, list(map(_status_row, tables)), noun="table", width=width)


def _status_row(status: "TableStatus") -> list[Any]:
    written = "" if status.damage or status.unsupported else "never"
    if status.written_at:
        written = f"{status.written_at:%Y-%m-%d %H:%MZ}"
    return [
        status.table,
        status.state,
        status.rows if status.is_read else "",
        size_text(status.size_bytes) if status.is_read else "",
        written,
        status.checks.summary,
    ]


def _notes(tables: "Sequence[TableStatus]", feeds: "FeedWarnings") -> Iterator[str]:
    """Yield a line for each table and feed with additional information."""
    for status in tables:
        notes = [
            "" if status.declared else "not declared",
            str(status.checks),
            f"{count(status.quarantined, 'row')} in quarantine" if status.quarantined else "",
            status.health,
            *(status.pending if status.exists else ()),
        ]
        if any(notes):
            yield f"{status.table}: {'; '.join(filter(None, notes))}"
    for name, warnings in feeds.items():
        if warnings:
            yield f"feed {name}: {'; '.join(warnings)}"


def _incident_line(incident: "Incident") -> str:
    title = printable(incident.firing.title)
    return f"{incident.firing.severity}: {title}, since {incident.opened_at:%Y-%m-%d %H:%MZ}"
