"""`lakehouse status` and `lakehouse files`: what there is, without a JVM."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.output import conclude, count, json_array, size, table
from lakehouse.cli.state import State, command
from lakehouse.cli.values import Column, as_text, plain_json

if TYPE_CHECKING:
    from lakehouse.cli.status import Checks, TableStatus
    from lakehouse.iceberg.inspecting.manifest_entries import TableFile
    from lakehouse.iceberg.inspecting.metadata_files import MetadataFile

_FORMAT = click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)


@command("status")
@_FORMAT
def status(state: State, form: str) -> None:
    """List the tables, and how they are.

    Shown are rows, snapshots, files and their size as of now, the last write and its kind (what the lakehouse did, or
    Iceberg's word where something else wrote), the last result of the checks, and what is declared but not yet made.
    Times are in UTC.
    """
    from lakehouse.cli.status import table_statuses

    with state.progress("Reading the tables' metadata"):
        checks = _checks(state)
        found = table_statuses(state.engine.catalog, state.declared, checks)
    open_now = _open_alerts(state)
    if form == "json":
        _print_json([_status_record(one, open_now.get(one.table, [])) for one in found])
    else:
        click.echo(_status_table(found))
        broken = sum(len(titles) for titles in open_now.values())
        if broken:
            click.echo(f"{count(broken, 'thing')} broken now; `lakehouse alerts --open` lists what was told of it.")
    conclude((), [one.damage for one in found if one.damage], success=not any(one.damage for one in found))


@command("files")
@click.argument("name", metavar="TABLE")
@_FORMAT
def files(state: State, name: str, form: str) -> None:
    """List the files of a table.

    Data and delete files are those of the current snapshot, metadata files those of all snapshots that are kept.
    """
    from lakehouse.iceberg.inspecting.metadata import files as table_files
    from lakehouse.iceberg.inspecting.metadata_files import metadata_files

    with state.progress("Reading the table's metadata"):
        there = state.table_there(name)
        held, kept = table_files(state.engine, there), metadata_files(state.engine, there)
    records = [*(_file_record(file) for file in held), *(_metadata_record(file) for file in kept)]
    if form == "json":
        _print_json(records)
    else:
        click.echo(_files_table(records))


def _checks(state: State) -> "Mapping[str, Checks]":
    from lakehouse.cli.status import last_checks
    from lakehouse.definitions import defs
    from lakehouse.resources.instance import open_instance

    # Looking makes nothing: before the first run there is no instance, and no check was made.
    if not state.settings.dagster_home.exists():
        return {}
    with open_instance(state.settings) as instance:
        return last_checks(instance, defs.resolve_asset_graph().asset_check_keys, state.declared)


def _open_alerts(state: State) -> "dict[str, list[str]]":
    """Return what is broken now by table, as `lakehouse alerts` has it; under no name what is of no table."""
    from lakehouse.monitoring.alert_state import read_state

    found: dict[str, list[str]] = {}
    for incident in read_state(state.settings).open.values():
        found.setdefault(incident.broke.table, []).append(incident.broke.title)
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
    return table([Column(name, is_number=name in (*numbers, "size")) for name in names], rows, noun="table")


def _status_row(one: "TableStatus") -> list[Any]:
    is_read = one.exists and not one.damage
    never = "" if one.damage else "never"
    return [
        one.table,
        "yes" if one.declared else "no",
        *([one.rows, one.snapshots, one.files, size(one.size_bytes)] if is_read else ["", "", "", ""]),
        one.written_at.strftime("%Y-%m-%d %H:%M:%SZ") if one.written_at else never,
        one.kind or "",
        _how_it_is(one),
        "; ".join(one.pending),
    ]


def _how_it_is(one: "TableStatus") -> str:
    quarantined = f"{count(one.quarantined, 'row')} in quarantine" if one.quarantined else ""
    return ", ".join(filter(None, (str(one.checks), quarantined)))


def _file_record(file: "TableFile") -> dict[str, Any]:
    kind = "data" if file.content == "data" else file.content
    return {
        "kind": kind,
        "partition": dict(file.partition),
        "rows": file.record_count,
        "bytes": file.size_bytes,
        "path": file.path,
    }


def _metadata_record(file: "MetadataFile") -> dict[str, Any]:
    return {"kind": file.kind, "partition": {}, "rows": None, "bytes": file.size_bytes, "path": file.path}


def _files_table(records: list[dict[str, Any]]) -> str:
    rows = [
        [
            record["kind"],
            ", ".join(f"{name}={as_text(plain_json(value))}" for name, value in record["partition"].items()),
            "" if record["rows"] is None else record["rows"],
            size(record["bytes"]),
            record["path"],
        ]
        for record in records
    ]
    numbers = ("rows", "size")
    columns = [Column(name, is_number=name in numbers) for name in ("kind", "partition", "rows", "size", "path")]
    total = f"{count(len(records), 'file')}, {size(sum(record['bytes'] for record in records))} in total"
    return table(columns, rows, footer=total)


def _print_json(records: list[dict[str, Any]]) -> None:
    columns = [Column(name) for name in (records[0] if records else ())]
    click.echo(json_array(columns, [[plain_json(value) for value in record.values()] for record in records]))
