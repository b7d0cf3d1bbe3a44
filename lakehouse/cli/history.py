"""`lakehouse history`: the snapshots of a table and what made them, or how its columns came to
be; without a JVM.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli.call_context import State, command
from lakehouse.cli.output.cell_values import Column, plain_json
from lakehouse.cli.output.printing import FORMATS, Format, render, table

if TYPE_CHECKING:
    from lakehouse.iceberg.evolve.schema_history import SchemaChange
    from lakehouse.iceberg.metadata.history import History, Snapshot

_NUMBERS = ("added_rows", "deleted_rows", "rows")
_RUN_DIGITS = 8
"""How much of a run id is shown in a table, as in Dagster's UI."""


@command("history")
@click.argument("name", metavar="TABLE")
@click.option(
    "--schema", is_flag=True, help="Show how columns, partitioning and sort order changed."
)
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="table", show_default=True
)
def history(state: State, name: str, schema: bool, form: Format) -> None:
    """List a table's snapshots, oldest first.

    Shown is when readers first saw each (a rollback lists none again), what made it (what the
    lakehouse did, or nothing where something else wrote), in which run, and its rows. Added and
    deleted rows are as Iceberg counts them, rows that were carried into another file among
    them; `lakehouse diff` tells those that changed. Times are in UTC.
    """
    with state.progress("Reading the table's metadata"):
        there = state.table_there(name)
        records = _schema_records(state, there) if schema else _snapshot_records(state, there)
    noun = "change" if schema else "snapshot"
    click.echo(_table(records, noun) if form == "table" else _listed(form, records))


def _snapshot_records(state: State, name: str) -> list[dict[str, Any]]:
    from lakehouse.iceberg.metadata.history import read_history

    found = read_history(state.engine, name)
    ancestors = {one.snapshot_id for one in found.line}
    refs: dict[int, list[str]] = {}
    for ref, snapshot_id in sorted(found.refs.items()):
        refs.setdefault(snapshot_id, []).append(ref)
    return [
        _record(at, one, refs, one.snapshot_id in ancestors) for at, one in _published(found)
    ]


def _published(found: "History") -> "Iterator[tuple[datetime | None, Snapshot]]":
    """Yield what main was, and when first; before each the steps that were published with it,
    which nobody saw alone.

    A rollback makes an old snapshot current again, and the log of the table has it twice; here
    it stands once.
    """
    told = {snapshot_id for _, snapshot_id in found.log}
    for at, snapshot_id in _first_times(found.log):
        if snapshot_id not in found.snapshots:
            continue
        steps = []
        for ancestor in islice(found.ancestors(snapshot_id), 1, None):
            if ancestor.snapshot_id in told:
                break
            steps.append(ancestor)
        told |= {step.snapshot_id for step in steps}
        yield from ((None, step) for step in reversed(steps))
        yield at, found.snapshots[snapshot_id]


def _first_times(log: "Sequence[tuple[datetime, int]]") -> "list[tuple[datetime, int]]":
    firsts: dict[int, datetime] = {}
    for at, snapshot_id in log:
        firsts.setdefault(snapshot_id, at)
    return [(at, snapshot_id) for snapshot_id, at in firsts.items()]


def _record(
    at: datetime | None, one: "Snapshot", refs: Mapping[int, list[str]], is_ancestor: bool
) -> dict[str, Any]:
    count = one.count
    return {
        "made_current_at": at,
        "snapshot_id": str(one.snapshot_id),
        "operation": one.operation,
        "kind": one.stamp.kind if one.stamp else None,
        "run_id": (one.stamp.run_id if one.stamp else None) or None,
        "added_rows": count("added-records"),
        "deleted_rows": (
            count("deleted-records")
            + count("added-position-deletes")
            - count("removed-position-deletes")
        ),
        "rows": one.rows,
        "refs": refs.get(one.snapshot_id, []),
        "is_current_ancestor": is_ancestor,
    }


def _schema_records(state: State, name: str) -> list[dict[str, Any]]:
    from lakehouse.iceberg.evolve.schema_history import read_schema_history

    return [_schema_record(one) for one in read_schema_history(state.engine, name)]


def _schema_record(one: "SchemaChange") -> dict[str, Any]:
    return {
        "at": one.at,
        "snapshot_id": str(one.snapshot.snapshot_id) if one.snapshot else None,
        "run_id": one.run_id or None,
        "change": one.change.what,
        "name": one.change.name or None,
        "before": one.change.before or None,
        "after": one.change.after or None,
    }


def _listed(form: Format, records: Sequence[Mapping[str, Any]]) -> str:
    columns = [Column(name) for name in (records[0] if records else ())]
    return render(
        form, columns, [[plain_json(value) for value in record.values()] for record in records]
    )


def _table(records: Sequence[Mapping[str, Any]], noun: str) -> str:
    names = [
        name
        for name in (records[0] if records else {"snapshot_id": ""})
        if name != "is_current_ancestor"
    ]
    columns = [
        Column(name.removesuffix("_id").replace("_", " "), name in _NUMBERS) for name in names
    ]
    return table(
        columns, [[_cell(record, name) for name in names] for record in records], noun=noun
    )


def _cell(record: Mapping[str, Any], name: str) -> Any:
    value = record[name]
    if name == "refs":
        return ", ".join(
            [*value, *([] if record["is_current_ancestor"] else ["(rolled back)"])]
        )
    if value is None:
        return ""
    return value[:_RUN_DIGITS] if name == "run_id" else plain_json(value)
