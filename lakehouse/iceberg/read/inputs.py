"""How a table is read: the latest state, what was appended since the last time, or as of a
point in its past.

Every read is pinned to a snapshot id: a frame over the bare table changes when somebody
commits.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from lakehouse.errors import SnapshotNotFound, UsageError
from lakehouse.iceberg.metadata.changed_partitions import changed_values
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import History, first_rewriting, read_history
from lakehouse.iceberg.metadata.table_state import names_at
from lakehouse.iceberg.metadata.write_context import Run
from lakehouse.iceberg.metadata.write_result import Pin
from lakehouse.iceberg.read.changed_rows import keys_of_changed_rows
from lakehouse.tables.quoting import among, identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


SINCE = ("incremental", "changed_keys")
"""The modes that read what came since the target was last computed."""


@dataclass(frozen=True)
class Input:
    """What an asset reads of a table.

    `by` is the column that the run's partitions are looked for in; with `outside`, all rows but
    theirs are read.
    """

    table: str
    mode: Literal[
        "latest", "incremental", "versions", "existing_rows", "changed_keys", "as_of"
    ] = "latest"
    by: str | None = None
    outside: bool = False
    keys: tuple[str, ...] = ()
    snapshot_id: int | None = None
    timestamp: datetime | None = None
    tag: str | None = None


def latest(table: str, *, by: str | None = None, outside: bool = False) -> Input:
    """Read the current snapshot; with `by`, only the run's partitions of that column, or all
    rows outside of them.

    Rows of which `by` lies in no partition of the table are quarantined as `has_partition`, or
    fail the check of that name; not where an input of the same table reads what is `outside`,
    which is then the function's to place.
    """
    return Input(table, "latest", by=by, outside=outside)


def incremental(table: str, *, by: str | None = None, outside: bool = False) -> Input:
    """Read what was appended since the target was last computed from this table; all of it
    where that can't be told.

    With `by`, only of the run's partitions of that column, or what is outside of them. Of
    partitions that are computed in full all is read: a table that is overwritten by partitions
    needs `existing_rows` too.
    """
    return Input(table, "incremental", by=by, outside=outside)


def versions_of(table: str, *, by: str | None = None) -> Input:
    """Read what arrived, as versions of rows of which the newest counts that the rules accept.

    The function says what a row is, and no more: it returns the frame that it is given, or some
    rows and columns of it. Of these and of the rows that the table has already, wherever they
    are, the write keeps the newest accepted version of each, and the refused ones that no such
    version has corrected. It may be called more than once.

    What a version is, and which is newest, is the table's `versions=`. A merge that declares
    none keeps of each key the row of the last file, and within a file the first.

    :param by: for a table that is overwritten by partitions, the column in which these are
        looked for. A row that belongs to no partition, such as one that cannot be dated, goes
        along with any run; a rule should refuse it.
    """
    return Input(table, "versions", by=by)


def existing_rows(table: str, *, by: str, outside: bool = False) -> Input:
    """Read the target's own rows of the run's partitions of that column, to which what is
    `incremental` comes.

    None of partitions that are computed in full: by hand, the first time, after the target's
    declaration changed, or where it can't be told what was appended since. With `outside`, read
    those elsewhere that may be versions of what came.
    """
    return Input(table, "existing_rows", by=by, outside=outside)


def changed_keys(table: str, *, of: str | Sequence[str], by: str) -> Input:
    """Read the keys of which a row came, went or changed since the target was last computed.

    Rows are compared in the partitions of `by` that were touched since. Where that can't be
    told, all keys that the table or the target has. A target that computes these keys in full, and
    removes those without rows, is as if it had been computed in full.
    """
    return Input(table, "changed_keys", by=by, keys=(of,) if isinstance(of, str) else tuple(of))


def as_of(
    table: str,
    *,
    snapshot_id: int | None = None,
    timestamp: datetime | None = None,
    tag: str | None = None,
) -> Input:
    """Read a past state: of a snapshot id, of a moment (with its time zone), or of a tag.

    :raises UsageError: unless exactly one of the three is given.
    """
    moments = [value for value in (snapshot_id, timestamp, tag) if value is not None]
    if len(moments) != 1:
        raise UsageError(
            f"as_of({table!r}) got {len(moments)} points in time; expected one of snapshot_id,"
            " timestamp, tag."
        )
    if timestamp is not None and timestamp.tzinfo is None:
        raise UsageError(
            f"as_of({table!r}) got {timestamp.isoformat()} without a time zone; expected one,"
            " such as UTC."
        )
    return Input(table, "as_of", snapshot_id=snapshot_id, timestamp=timestamp, tag=tag)


def pin(
    engine: Engine, inputs: Mapping[str, Input], target: str, *, full_recompute: bool = False
) -> dict[str, Pin]:
    """Resolve each input to the snapshot that will be read; metadata only, no JVM.

    :param target: the table whose commits hold the watermarks.
    :param full_recompute: whether the run's partitions are computed from all rows of their
        sources, whatever the table has of them.
    :raises TableNotFound: when an input, or the target of an incremental one, is not there.
    """
    marks = (
        read_history(engine, target)
        if any(declared.mode in SINCE for declared in inputs.values())
        else None
    )
    # Once for each table: two inputs of one table are read of the same snapshot.
    sources: dict[str, History] = {}
    for declared in inputs.values():
        if declared.table not in sources:
            sources[declared.table] = read_history(engine, declared.table)
    pins = {
        name: _pin_one(sources[declared.table], declared, marks)
        for name, declared in inputs.items()
    }
    added = _added(inputs)
    if full_recompute or any(pins[name].since_snapshot_id is None for name in added):
        pins |= {name: _whole(sources[pins[name].table], pins[name]) for name in added}
        staying = (
            name
            for name, declared in inputs.items()
            if declared.mode == "existing_rows" and not declared.outside
        )
        pins |= {name: replace(pins[name], rows=0) for name in staying}
    return pins


def read_since(inputs: Mapping[str, Input], pins: Mapping[str, Pin]) -> dict[str, int]:
    """Return, by table, the snapshot after which it is read for the run's partitions; none
    where that is all of it.
    """
    read_pins = (pins[name] for name in _added(inputs))
    return {
        pin.table: pin.since_snapshot_id
        for pin in read_pins
        if pin.since_snapshot_id is not None
    }


def _added(inputs: Mapping[str, Input]) -> list[str]:
    """Return the names of the inputs that read what came to the run's partitions."""
    return [
        name
        for name, declared in inputs.items()
        if declared.mode == "incremental" and declared.by and not declared.outside
    ]


def _whole(source: History, pinned: Pin) -> Pin:
    if pinned.snapshot_id is None or pinned.since_snapshot_id is None:
        return pinned
    rows = source.snapshots[pinned.snapshot_id].rows
    return Pin(pinned.table, pinned.snapshot_id, rows=rows, note="read in full: full recompute")


def read(engine: Engine, pinned: Pin, where: str | None = None) -> "DataFrame":
    """Return the frame of a pinned input, narrowed by a SQL predicate that Iceberg prunes files
    by.
    """
    name = engine.catalog.sql_name(pinned.table)
    if pinned.snapshot_id is None:
        # A table without a snapshot cannot change under our feet before it has one, and then
        # the pin is no longer it.
        frame = engine.spark.table(name).where("false")
    elif pinned.is_empty or pinned.rows == 0:
        # Known before it is read, so that Spark leaves out whatever it would be joined with.
        frame = (
            engine.spark.read.option("versionAsOf", str(pinned.snapshot_id))
            .table(name)
            .where("false")
        )
    elif pinned.since_snapshot_id is None:
        frame = engine.spark.read.option("versionAsOf", str(pinned.snapshot_id)).table(name)
    else:
        bounds = {
            "start-snapshot-id": str(pinned.since_snapshot_id),
            "end-snapshot-id": str(pinned.snapshot_id),
        }
        frame = engine.spark.read.format("iceberg").options(**bounds).load(name)
    return frame.where(where) if where else frame


def read_main(engine: Engine, table: str) -> "DataFrame":
    """Return the frame of what readers see of a table now."""
    main = read_history(engine, table).main
    return read(engine, Pin(table, main.snapshot_id if main else None))


def pin_since(source: History, since: int | None, until: int) -> Pin:
    """Return what was appended to a table after a snapshot, up to another; all rows where that
    can't be told.

    It can't be told where the start is None or no longer an ancestor that is kept, and where
    rows were rewritten since, or some of what was appended has been erased.
    """
    rows = source.snapshots[until].rows
    if since is None:
        return Pin(source.table, until, rows=rows, note="read in full: the first time")
    if since == until:
        return Pin(source.table, until, since, rows=0)
    added = source.kept_between(since, until)
    if added is None:
        return Pin(
            source.table,
            until,
            rows=rows,
            note=f"read in full: snapshot {since} is gone from main",
        )
    rewriting = first_rewriting(added)
    if rewriting:
        note = f"read in full: snapshot {rewriting.snapshot_id} is a {rewriting.operation}"
        return Pin(source.table, until, rows=rows, note=note)
    appended = sum(
        snapshot.count("added-records") for snapshot in added if snapshot.operation == "append"
    )
    return Pin(source.table, until, since, rows=appended)


def read_inputs(
    engine: Engine,
    inputs: Mapping[str, Input],
    pins: Mapping[str, Pin],
    run: Run,
    target: str,
    affected: Collection[Any] | None = None,
) -> "dict[str, DataFrame]":
    """Return the frames of a write's inputs, each narrowed to the run's partitions where it
    asks for that.

    :param affected: the partitions where versions of what came stand; None where they are not
        known.
    """
    return {
        name: (
            _read_keys(engine, declared, pins[name], target)
            if declared.mode == "changed_keys"
            else read(engine, pins[name], _narrowed(declared, run, affected))
        )
        for name, declared in inputs.items()
    }


def _read_keys(engine: Engine, declared: Input, pinned: Pin, target: str) -> "DataFrame":
    """Return the keys of `changed_keys`, each once."""
    keys = [identifier(name) for name in declared.keys]
    now = read(engine, replace(pinned, since_snapshot_id=None, rows=None))
    if pinned.is_empty or pinned.snapshot_id is None:
        return now.where("false").selectExpr(*keys)
    if pinned.since_snapshot_id is None:
        return (
            now.selectExpr(*keys)
            .unionAll(read_main(engine, target).selectExpr(*keys))
            .distinct()
        )
    assert declared.by is not None
    history, loaded = read_history(engine, declared.table), engine.catalog.load(declared.table)
    touched = changed_values(
        loaded, history, pinned.since_snapshot_id, pinned.snapshot_id, declared.by
    )
    names = names_at(loaded, pinned.snapshot_id, pinned.since_snapshot_id)
    by = names[declared.by]
    assert by is not None
    before = read(engine, Pin(declared.table, pinned.since_snapshot_id), among(by, touched))
    return keys_of_changed_rows(
        now.where(among(declared.by, touched)), before, names, declared.keys
    )


def _narrowed(declared: Input, run: Run, affected: Collection[Any] | None) -> str | None:
    if not declared.by or not run.partitions:
        return None
    if not declared.outside:
        return run.partitions.predicate(declared.by)
    outside = run.partitions.outside(declared.by)
    if declared.mode != "existing_rows" or affected is None:
        return outside
    return f"({outside} AND {among(declared.by, affected)})"


def _pin_one(source: History, declared: Input, marks: History | None) -> Pin:
    if declared.mode == "as_of":
        return Pin(declared.table, _resolve(source, declared))
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
        note = (
            "read in full: the first time"
            if since is None
            else f"read in full: snapshot {since} is gone from main"
        )
        return Pin(table, head, note=note)
    return Pin(table, head, since)


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
            next_step="It may have expired; the history table lists those that are kept.",
        )
    return declared.snapshot_id
