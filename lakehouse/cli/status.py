"""`lakehouse status`: the tables and how they are, without a JVM."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.cell_values import columns_named, utc_seconds
from lakehouse.cli.output.printing import complain, conclude, count, size, table
from lakehouse.cli.output.records import print_records, table_or_json

if TYPE_CHECKING:
    from lakehouse.cli.table_status import Sources, TableStatus
    from lakehouse.orchestration.dagster_internals import AssetGraph


@command("status")
@click.option("--trend", is_flag=True, help="Show how they changed over time instead.")
@table_or_json
def status(state: State, trend: bool, form: str) -> None:
    """List the tables, and how they are.

    Shown are rows, snapshots, files and their size as of now, the last write and its kind (what
    the lakehouse did, or Iceberg's word where something else wrote), whether a table is stale
    (what it is computed from has news for it) or blocked (a run refused it, and would again),
    whether rows in it, or how many of its partitions, were computed by older code,
    small files that could be joined and delete files where there are some, with what upkeep
    does with them or why it leaves them, the last result of the checks, and what is declared but
    not yet made. Times are in UTC.

    --trend shows rows, sizes, and the share of rows that failed the check which most rows
    failed, a mark for each span of the last 90 days at most; JSON has the numbers.
    """
    with state.progress("Reading the tables' metadata"):
        tables = _read_tables(state)
    if trend:
        _print_trends(state, tables, form)
        return
    open_now = _open_incidents(state)
    if form == "json":
        print_records(
            _status_record(table_status, open_now.get(table_status.table, []))
            for table_status in tables
        )
    else:
        click.echo(_status_table(tables))
        incidents = sum(map(len, open_now.values()))
        if incidents:
            click.echo(
                f"{count(incidents, 'incident')} open; `lakehouse alerts --open` lists the alerts."
            )
    for table_status in tables:
        if table_status.unsupported:
            complain(f"Not read: {table_status.unsupported}")
    damage = [table_status.damage for table_status in tables if table_status.damage]
    conclude((), damage, success=not damage)


def _print_trends(state: State, tables: "Sequence[TableStatus]", form: str) -> None:
    from lakehouse.cli.status_trend import read_table_trends, trend_record, trend_table

    with state.progress("Reading what was measured"):
        trends = read_table_trends(state, tables, datetime.now(UTC))
    if form == "json":
        print_records(
            {"table": status.table, **trend_record(trends.get(status.table))}
            for status in tables
        )
    else:
        click.echo(trend_table(trends))


def _read_tables(state: State) -> "Sequence[TableStatus]":
    from lakehouse.cli.table_status import (
        last_checks,
        table_statuses,
        with_blocked,
        with_code,
        with_upkeep,
    )
    from lakehouse.maintenance.upkeep_round import at_one_moment
    from lakehouse.orchestration.instance import open_instance

    upkept = state.project.upkept()
    engine = at_one_moment(state.engine, upkept)
    graph, catalog, declared = state.project.graph, engine.catalog, state.declared
    sources = _sources(graph)
    # Reading creates nothing: before the first run there is no instance, and no check was made.
    if state.settings.dagster_home.exists():
        with open_instance(state.settings) as instance:
            checks = last_checks(instance, graph.asset_check_keys, declared)
            tables = table_statuses(catalog, declared, checks, sources)
            tables = with_blocked(tables, instance, declared, sources)
    else:
        tables = table_statuses(catalog, declared, {}, sources)
    tables = with_code(tables, catalog, declared, graph)
    return with_upkeep(tables, engine, upkept, datetime.now(UTC))


def _sources(graph: "AssetGraph") -> "Sources":
    """Return, by table, those whose current state it is computed from."""
    from lakehouse.orchestration.asset_keys import table_name
    from lakehouse.orchestration.runs_for_stale_tables import Downstream

    names = [table_name(key) for key in graph.executable_asset_keys]
    return {name: Downstream(graph, name).read_now(name) for name in names}


def _open_incidents(state: State) -> "dict[str, list[str]]":
    """Return the titles of open incidents by table; under no name those of no table."""
    from lakehouse.monitoring.alert_state import read_state

    titles: dict[str, list[str]] = {}
    for incident in read_state(state.settings).open.values():
        titles.setdefault(incident.firing.table, []).append(incident.firing.title)
    return titles


def _status_record(status: "TableStatus", open_alerts: "list[str]") -> dict[str, Any]:
    return {
        "table": status.table,
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
        "stale": status.is_stale,
        "refused_by": status.refused_by or None,
        "code": status.code_state,
        "older_partitions": len(status.code.older_partitions) if status.code else None,
        "small_files": status.small_files,
        "delete_files": status.delete_files,
        "upkeep": status.upkeep or None,
        "open_alerts": open_alerts,
        "pending": list(status.pending),
        "damage": status.damage or None,
        "unsupported": status.unsupported or None,
    }


def _status_table(tables: "Sequence[TableStatus]") -> str:
    numbers = ("rows", "snapshots", "files")
    names = (
        "table",
        "declared",
        *numbers,
        "size",
        "last write",
        "kind",
        "state",
        "health",
        "checks",
        "pending",
    )
    columns = columns_named(names, numbers=(*numbers, "size"))
    return table(columns, list(map(_status_row, tables)), noun="table")


def _status_row(status: "TableStatus") -> list[Any]:
    numbers: list[Any] = ["", "", "", ""]
    if status.is_read:
        numbers = [status.rows, status.snapshots, status.files, size(status.size_bytes)]
    never = "" if status.damage or status.unsupported else "never"
    return [
        status.table,
        "yes" if status.declared else "no",
        *numbers,
        utc_seconds(status.written_at) if status.written_at else never,
        status.kind or "",
        status.state,
        status.health,
        _describe_state(status),
        "; ".join(status.pending),
    ]


def _describe_state(status: "TableStatus") -> str:
    quarantined = (
        f"{count(status.quarantined, 'row')} in quarantine" if status.quarantined else ""
    )
    return ", ".join(filter(None, (str(status.checks), quarantined)))
