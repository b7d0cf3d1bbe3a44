"""Pinned snapshots of the inputs, and the start of incremental reads.

Every read is pinned to a snapshot id, since an unpinned DataFrame changes with each commit.
"""

from collections.abc import Mapping
from dataclasses import replace

from lakehouse.errors import SnapshotNotFound
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.snapshots import History, first_rewriting, read_history
from lakehouse.iceberg.read.inputs import SINCE, Input
from lakehouse.iceberg.values.write_result import Pin


def pin(
    engine: Engine,
    inputs: Mapping[str, Input],
    target: str,
    *,
    full_recompute: bool = False,
    reads_everything: bool = False,
    because: str = "full recompute",
) -> dict[str, Pin]:
    """Resolve each input to a snapshot; metadata only, no JVM.

    :param target: the table whose commits contain the watermarks.
    :param full_recompute: whether the run's partitions are computed from all rows of their
        sources.
    :param reads_everything: whether each input is read in full, also without partitions.
    :param because: the reason, for the notes of these inputs.
    :raises TableNotFound: if an input, or the target of an incremental one, does not exist.
    """
    marks = (
        read_history(engine, target)
        if any(declared.mode in SINCE for declared in inputs.values())
        else None
    )
    # Once per table, so that two inputs of one table have the same snapshot.
    sources: dict[str, History] = {}
    for declared in inputs.values():
        if declared.table not in sources:
            sources[declared.table] = read_history(engine, declared.table)
    pins = {
        name: _pin_one(sources[declared.table], declared, marks)
        for name, declared in inputs.items()
    }
    added = partition_appends(inputs)
    if reads_everything:
        since = (name for name, declared in inputs.items() if declared.mode in SINCE)
        pins |= {
            name: _in_full(sources[pins[name].table], pins[name], because) for name in since
        }
    if full_recompute or any(pins[name].since_snapshot_id is None for name in added):
        pins |= {
            name: _in_full(sources[pins[name].table], pins[name], because) for name in added
        }
        staying = (
            name
            for name, declared in inputs.items()
            if declared.mode == "existing_rows" and not declared.outside
        )
        pins |= {name: replace(pins[name], rows=0) for name in staying}
    return pins


def read_since(inputs: Mapping[str, Input], pins: Mapping[str, Pin]) -> dict[str, int]:
    """Return the start snapshot of each incremental read in the run's partitions, by table."""
    read_pins = (pins[name] for name in partition_appends(inputs))
    return {
        pin.table: pin.since_snapshot_id
        for pin in read_pins
        if pin.since_snapshot_id is not None
    }


def partition_appends(inputs: Mapping[str, Input]) -> list[str]:
    """Return the names of inputs that read new rows of the run's partitions."""
    return [
        name
        for name, declared in inputs.items()
        if declared.mode == "incremental" and declared.by and not declared.outside
    ]


def _in_full(source: History, pinned: Pin, because: str) -> Pin:
    if pinned.snapshot_id is None or pinned.since_snapshot_id is None:
        return pinned
    rows = source.snapshots[pinned.snapshot_id].rows
    return Pin(pinned.table, pinned.snapshot_id, rows=rows, note=f"read in full: {because}")


def pin_since(source: History, since: int | None, until: int) -> Pin:
    """Return the pin of the rows appended after a snapshot, up to another; all rows if unknown."""
    last = source.snapshots[until]
    if since == until:
        return Pin(source.table, until, since, rows=0)
    added = source.kept_between(since, until)
    if added is None:
        return Pin(source.table, until, rows=last.rows, note=_unknown_start(since))
    rewriting = first_rewriting(added)
    if rewriting:
        note = f"read in full: snapshot {rewriting.snapshot_id} is a {rewriting.operation}"
        return Pin(source.table, until, rows=last.rows, note=note)
    appends = [snapshot for snapshot in added if snapshot.operation == "append"]
    is_counted = all(snapshot.has_totals for snapshot in appends)
    appended = sum(snapshot.count("added-records") for snapshot in appends)
    return Pin(source.table, until, since, rows=appended if is_counted else None)


def _pin_one(source: History, declared: Input, marks: History | None) -> Pin:
    if declared.mode == "as_of":
        return Pin(declared.table, _resolve(source, declared), is_past=True)
    head = source.main
    if head is None:
        return Pin(declared.table, None, rows=0)
    if declared.mode in ("latest", "existing_rows") or marks is None:
        return Pin(declared.table, head.snapshot_id, rows=head.rows)
    since = marks.watermark(declared.table)
    if declared.mode == "changed_keys":
        return _pin_keys(source, declared.table, since)
    return pin_since(source, since, head.snapshot_id)


def _pin_keys(source: History, table: str, since: int | None) -> Pin:
    assert source.main is not None
    head = source.main.snapshot_id
    if since == head:
        return Pin(table, head, since, rows=0)
    if source.kept_between(since, head) is None:
        return Pin(table, head, note=_unknown_start(since))
    return Pin(table, head, since)


def _unknown_start(since: int | None) -> str:
    if since is None:
        return "read in full: the first time"
    return f"read in full: snapshot {since} is no longer in main"


def _resolve(source: History, declared: Input) -> int:
    if declared.timestamp is not None:
        return source.at(declared.timestamp).snapshot_id
    if declared.tag is not None:
        if declared.tag not in source.refs:
            known = ", ".join(sorted(source.refs)) or "none"
            raise SnapshotNotFound(
                f"{declared.table} has no tag or branch {declared.tag!r}; it has {known}."
            )
        return source.refs[declared.tag]
    if declared.snapshot_id is None or declared.snapshot_id not in source.snapshots:
        raise SnapshotNotFound(
            f"{declared.table} has no snapshot {declared.snapshot_id}; it keeps"
            f" {len(source.snapshots)} snapshots.",
            next_step="It may have expired; the history table lists the retained snapshots.",
        )
    return declared.snapshot_id
