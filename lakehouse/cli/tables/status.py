"""`lakehouse status`: lists the tables and their states; no JVM."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.cell_values import columns_named, utc_seconds
from lakehouse.cli.output.printing import complain, conclude, count, printable, table
from lakehouse.cli.output.record_output import print_records, table_or_json
from lakehouse.cli.output.table_layout import terminal_width
from lakehouse.storage.byte_sizes import size_text

if TYPE_CHECKING:
    from lakehouse.alerts.incidents import Incident
    from lakehouse.cli.tables.read_table_status import TableStatus, TableTrend
    from lakehouse.site.facts import Outcome
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

    Below the table: failed checks and warnings, quarantined rows, pending changes, feeds with
    rejected files or a stopped sensor, and open incidents. JSON has more.

    --trend shows rows, sizes, and the highest share of rows that failed a check, as one character
    per interval of the retained snapshots or up to 90 days; JSON has the numbers.
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
        print_records(_status_record(one, warnings.get(one.facts.name, [])) for one in tables)
    else:
        click.echo(_status_table(tables))
        for line in _notes(tables, feeds):
            click.echo(_wrapped(printable(line)))
        for incident in incidents:
            click.echo(_incident_line(incident))
        if incidents:
            click.echo(
                f"{count(len(incidents), 'incident')} open; `lakehouse alerts --open` lists the"
                " alerts."
            )
    for one in tables:
        if one.facts.unsupported and not one.damage:
            complain(f"Not read: {one.facts.unsupported}")
    damage = [one.damage for one in tables if one.damage]
    conclude((), damage, success=not damage)


def _wrapped(line: str) -> str:
    return textwrap.fill(
        line,
        terminal_width() or _WIDTH,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _print_trends(state: State, tables: "Sequence[TableStatus]", form: str) -> None:
    from lakehouse.cli.tables.read_table_status import read_trends

    histories = {one.facts.name: one.facts.history for one in tables if one.facts.history}
    with state.progress("Reading what was measured"):
        trends = read_trends(state.engine.catalog, histories.values(), datetime.now(UTC))
    if form == "json":
        names = (one.facts.name for one in tables)
        print_records({"table": name, **trend_record(trends.get(name))} for name in names)
    else:
        click.echo(trend_table(trends))


def _read_tables(state: State) -> "tuple[Sequence[TableStatus], FeedWarnings]":
    """Return the statuses of the tables, and the warnings of each feed by its name."""
    from lakehouse.cli.tables.read_table_status import statuses_of
    from lakehouse.orchestration.runs.instance import open_instance
    from lakehouse.site.read_feeds import feed_warnings
    from lakehouse.site.read_site import read_tables
    from lakehouse.upkeep.upkeep_run import with_cached_locations

    catalog = with_cached_locations(state.engine, state.project.upkept()).catalog
    settings, source = state.settings, state.project.site_source()
    names, incidents = sorted({*catalog.tables(), *state.declared}), _open_incidents(state)
    # Do not create an instance: there is none before the first run.
    has_instance = settings.dagster_home.exists()
    with open_instance(settings) if has_instance else nullcontext() as instance:
        tables = read_tables(source, names, catalog, instance, incidents, datetime.now(UTC))
        warnings = feed_warnings(settings, state.feeds.values(), instance)
    return statuses_of(tables, catalog, state.project.graph), warnings


def _open_incidents(state: State) -> "list[Incident]":
    """Return the open incidents, the errors and the oldest first."""
    from lakehouse.alerts.alert_state import read_state

    incidents = read_state(state.settings).open.values()
    return sorted(incidents, key=lambda one: (one.firing.severity, one.opened_at))


def _status_record(status: "TableStatus", feed_warnings: list[str]) -> dict[str, Any]:
    facts, code = status.facts, status.code
    condition = facts.condition
    return {
        "table": facts.name,
        "state": facts.state,
        "declared": facts.declared is not None,
        "exists": facts.exists,
        "rows": facts.rows,
        "snapshots": len(facts.history.snapshots) if facts.history else 0,
        "files": facts.total("data-files", "delete-files"),
        "bytes": facts.total("files-size"),
        "last_write": status.written_at,
        "last_write_kind": status.kind,
        "checks_passed": status.passed_checks,
        "checks_warned": status.checks_that("warned"),
        "checks_failed": status.checks_that("failed"),
        "quarantined_rows": status.quarantined,
        "stale": condition.is_stale,
        "refused_by": condition.blocked_by or None,
        "failed_run": condition.failed_run or None,
        "code": status.code_state,
        "older_partitions": len(code.older_partitions) if code else None,
        "open_alerts": [incident.firing.title for incident in condition.incidents],
        "feed_warnings": feed_warnings,
        "pending": list(status.pending),
        "damage": status.damage or None,
        "unsupported": facts.unsupported or None,
    }


def _status_table(tables: "Sequence[TableStatus]") -> str:
    names = ("table", "state", "rows", "size", "last write", "checks")
    columns = columns_named(names, numbers=("rows", "size"))
    width = terminal_width() or _WIDTH
    return table(columns, list(map(_status_row, tables)), noun="table", width=width)


def _status_row(status: "TableStatus") -> list[Any]:
    facts = status.facts
    written = "never" if status.is_read or not facts.exists else ""
    if status.written_at:
        written = f"{status.written_at:%Y-%m-%d %H:%MZ}"
    return [
        facts.name,
        status.state,
        facts.rows if status.is_read else "",
        size_text(facts.total("files-size")) if status.is_read else "",
        written,
        status.check_summary,
    ]


def _notes(tables: "Sequence[TableStatus]", feeds: "FeedWarnings") -> Iterator[str]:
    """Yield a line for each table and feed with additional information."""
    outcomes: tuple[Outcome, ...] = ("warned", "failed")
    for status in tables:
        notes = [] if status.facts.declared else ["not declared"]
        for outcome in outcomes:
            if names := status.checks_that(outcome):
                notes.append(f"{', '.join(names)} {outcome}")
        if status.quarantined:
            notes.append(f"{count(status.quarantined, 'row')} in quarantine")
        notes += status.pending if status.facts.exists else ()
        if notes:
            yield f"{status.facts.name}: {'; '.join(notes)}"
    for name, warnings in feeds.items():
        if warnings:
            yield f"feed {name}: {'; '.join(warnings)}"


def _incident_line(incident: "Incident") -> str:
    title = printable(incident.firing.title)
    return f"{incident.firing.severity}: {title}, since {incident.opened_at:%Y-%m-%d %H:%MZ}"
