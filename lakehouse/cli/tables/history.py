"""`lakehouse history`: lists the snapshots or the schema changes of a table; no JVM."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.cell_values import Column, columns_named, plain_json
from lakehouse.cli.output.printing import Format, render, table
from lakehouse.cli.output.record_output import table_csv_or_json

if TYPE_CHECKING:
    from lakehouse.iceberg.evolve.schema_history import SchemaChange
    from lakehouse.iceberg.metadata.snapshots import Snapshot

_NUMBERS = ("added_rows", "deleted_rows", "rows")
_RUN_DIGITS = 8
"""Number of digits of a run id in tables, as in the Dagster UI."""


@command("history")
@click.argument("name", metavar="TABLE")
@click.option(
    "--schema", is_flag=True, help="Show how columns, partitioning and sort order changed."
)
@table_csv_or_json
def history(state: State, name: str, schema: bool, form: Format) -> None:
    """List a table's snapshots, oldest first.

    Shows when each snapshot became current, the operation (empty for other writers and for the
    initial empty snapshot), the run, and row counts. A rollback does not list a snapshot again.
    Added and deleted rows are Iceberg's counts, including rows that were only moved to another
    file; `lakehouse diff` shows changed rows. Times are in UTC.
    """
    with state.progress("Reading the table's metadata"):
        read = _schema_records if schema else _snapshot_records
        records = read(state, state.existing_table(name))
    noun = "change" if schema else "snapshot"
    click.echo(_table(records, noun) if form == "table" else _listed(form, records))


def _snapshot_records(state: State, name: str) -> list[dict[str, Any]]:
    from lakehouse.iceberg.metadata.snapshots import read_history

    history = read_history(state.engine, name)
    ancestors = {snapshot.snapshot_id for snapshot in history.line}
    refs: dict[int, list[str]] = {}
    for ref, snapshot_id in sorted(history.refs.items()):
        refs.setdefault(snapshot_id, []).append(ref)
    first_times: dict[int, datetime] = {}
    for at, snapshot_id in history.log:
        first_times.setdefault(snapshot_id, at)
    return [
        _record(first_times.get(snapshot_id), snapshot, refs, snapshot_id in ancestors)
        for snapshot_id, snapshot in history.snapshots.items()
        if snapshot_id in ancestors or snapshot_id in first_times
    ]


def _record(
    at: datetime | None, snapshot: "Snapshot", refs: Mapping[int, list[str]], is_ancestor: bool
) -> dict[str, Any]:
    count = snapshot.count
    return {
        "made_current_at": at,
        "snapshot_id": str(snapshot.snapshot_id),
        "operation": snapshot.operation,
        "kind": snapshot.commit.kind if snapshot.commit else None,
        "run_id": (snapshot.commit.run_id if snapshot.commit else None) or None,
        "added_rows": count("added-records"),
        "deleted_rows": (
            count("deleted-records")
            + count("added-position-deletes")
            - count("removed-position-deletes")
        ),
        "rows": snapshot.rows,
        "refs": refs.get(snapshot.snapshot_id, []),
        "is_current_ancestor": is_ancestor,
    }


def _schema_records(state: State, name: str) -> list[dict[str, Any]]:
    from lakehouse.iceberg.evolve.schema_history import read_schema_history

    return list(map(_schema_record, read_schema_history(state.engine, name)))


def _schema_record(change: "SchemaChange") -> dict[str, Any]:
    return {
        "at": change.at,
        "snapshot_id": str(change.snapshot.snapshot_id) if change.snapshot else None,
        "run_id": change.run_id or None,
        "change": change.change.what,
        "name": change.change.name or None,
        "before": change.change.before or None,
        "after": change.change.after or None,
    }


def _listed(form: Format, records: Sequence[Mapping[str, Any]]) -> str:
    columns = columns_named(records[0] if records else ())
    return render(form, columns, [list(map(plain_json, record.values())) for record in records])


def _table(records: Sequence[Mapping[str, Any]], noun: str) -> str:
    names = list(records[0]) if records else ["snapshot_id"]
    if "is_current_ancestor" in names:
        names.remove("is_current_ancestor")
    columns = [
        Column(name.removesuffix("_id").replace("_", " "), name in _NUMBERS) for name in names
    ]
    rows = []
    for record in records:
        rows.append([_cell(record, name) for name in names])
    return table(columns, rows, noun=noun)


def _cell(record: Mapping[str, Any], name: str) -> Any:
    value = record[name]
    if name == "refs":
        rolled_back = [] if record["is_current_ancestor"] else ["(rolled back)"]
        return ", ".join([*value, *rolled_back])
    if value is None:
        return ""
    return value[:_RUN_DIGITS] if name == "run_id" else plain_json(value)
