"""`lakehouse status`: the tables and how they are, without a JVM."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.cell_values import Column
from lakehouse.cli.output.printing import conclude, count, size, table
from lakehouse.cli.output.records import print_values, table_or_json

if TYPE_CHECKING:
    from lakehouse.cli.table_status import Checks, TableStatus


@command("status")
@table_or_json
def status(state: State, form: str) -> None:
    """List the tables, and how they are.

    Shown are rows, snapshots, files and their size as of now, the last write and its kind (what
    the lakehouse did, or Iceberg's word where something else wrote), the last result of the
    checks, and what is declared but not yet made. Times are in UTC.
    """
    from lakehouse.cli.table_status import table_statuses

    with state.progress("Reading the tables' metadata"):
        checks = _checks(state)
        found = table_statuses(state.engine.catalog, state.declared, checks)
    open_now = _open_alerts(state)
    if form == "json":
        print_values([_status_record(one, open_now.get(one.table, [])) for one in found])
    else:
        click.echo(_status_table(found))
        broken = sum(len(titles) for titles in open_now.values())
        if broken:
            click.echo(
                f"{count(broken, 'incident')} open; `lakehouse alerts --open` lists the alerts."
            )
    conclude(
        (),
        [one.damage for one in found if one.damage],
        success=not any(one.damage for one in found),
    )


def _checks(state: State) -> "Mapping[str, Checks]":
    from lakehouse.cli.table_status import last_checks
    from lakehouse.definitions import defs
    from lakehouse.orchestration.instance import open_instance

    # Looking makes nothing: before the first run there is no instance, and no check was made.
    if not state.settings.dagster_home.exists():
        return {}
    with open_instance(state.settings) as instance:
        return last_checks(
            instance, defs.resolve_asset_graph().asset_check_keys, state.declared
        )


def _open_alerts(state: State) -> "dict[str, list[str]]":
    """Return what is broken now by table, as `lakehouse alerts` has it; under no name what is
    of no table.
    """
    from lakehouse.monitoring.alert_state import read_state

    found: dict[str, list[str]] = {}
    for incident in read_state(state.settings).open.values():
        found.setdefault(incident.firing.table, []).append(incident.firing.title)
    return found


def _status_record(one: "TableStatus", open_alerts: "list[str]") -> dict[str, Any]:
    return {
        "table": one.table,
        "declared": one.declared,
        "exists": one.exists,
        "rows": one.rows,
        "snapshots": one.snapshots,
        "files": one.files,
        "bytes": one.size_bytes,
        "last_write": one.written_at,
        "last_write_kind": one.kind,
        "checks_passed": one.checks.passed,
        "checks_warned": list(one.checks.warned),
        "checks_failed": list(one.checks.failed),
        "quarantined_rows": one.quarantined,
        "open_alerts": open_alerts,
        "pending": list(one.pending),
        "damage": one.damage or None,
    }


def _status_table(found: "list[TableStatus]") -> str:
    numbers = ("rows", "snapshots", "files")
    names = ("table", "declared", *numbers, "size", "last write", "kind", "checks", "pending")
    rows = [_status_row(one) for one in found]
    return table(
        [Column(name, is_number=name in (*numbers, "size")) for name in names],
        rows,
        noun="table",
    )


def _status_row(one: "TableStatus") -> list[Any]:
    is_read = one.exists and not one.damage
    never = "" if one.damage else "never"
    return [
        one.table,
        "yes" if one.declared else "no",
        *(
            [one.rows, one.snapshots, one.files, size(one.size_bytes)]
            if is_read
            else ["", "", "", ""]
        ),
        one.written_at.strftime("%Y-%m-%d %H:%M:%SZ") if one.written_at else never,
        one.kind or "",
        _how_it_is(one),
        "; ".join(one.pending),
    ]


def _how_it_is(one: "TableStatus") -> str:
    quarantined = f"{count(one.quarantined, 'row')} in quarantine" if one.quarantined else ""
    return ", ".join(filter(None, (str(one.checks), quarantined)))
