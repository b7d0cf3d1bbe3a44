"""How a table is read: the latest state, what was appended since the last time, or as of a point in its past.

Every read is pinned to a snapshot id: a frame over the bare table changes when somebody commits.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from lakehouse.errors import SnapshotNotFound, UsageError
from lakehouse.iceberg.engine import Engine
from lakehouse.iceberg.history import History, read_history
from lakehouse.iceberg.outcome import Pin
from lakehouse.iceberg.run import Run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Input:
    """What an asset reads of a table. `by` is the column that the run's partitions are looked for in."""

    table: str
    mode: Literal["latest", "incremental", "as_of"] = "latest"
    by: str | None = None
    snapshot_id: int | None = None
    timestamp: datetime | None = None
    tag: str | None = None


def latest(table: str, *, by: str | None = None) -> Input:
    """Read the current snapshot; with `by`, only the run's partitions of that column."""
    return Input(table, "latest", by=by)


def incremental(table: str) -> Input:
    """Read what was appended since the target was last computed from this table; all of it where that can't be told."""
    return Input(table, "incremental")


def as_of(
    table: str, *, snapshot_id: int | None = None, timestamp: datetime | None = None, tag: str | None = None
) -> Input:
    """Read a past state: of a snapshot id, of a moment (with its time zone), or of a tag.

    :raises UsageError: unless exactly one of the three is given.
    """
    given = [value for value in (snapshot_id, timestamp, tag) if value is not None]
    if len(given) != 1:
        raise UsageError(
            f"as_of({table!r}) got {len(given)} points in time; expected one of snapshot_id, timestamp, tag."
        )
    if timestamp is not None and timestamp.tzinfo is None:
        raise UsageError(
            f"as_of({table!r}) got {timestamp.isoformat()} without a time zone; expected one, such as UTC."
        )
    return Input(table, "as_of", snapshot_id=snapshot_id, timestamp=timestamp, tag=tag)


def pin(engine: Engine, inputs: Mapping[str, Input], target: str) -> dict[str, Pin]:
    """Resolve each input to the snapshot that will be read; metadata only, no JVM.

    :param target: the table whose commits hold the watermarks.
    :raises TableNotFound: when an input, or the target of an incremental one, is not there.
    """
    marks = read_history(engine, target) if any(given.mode == "incremental" for given in inputs.values()) else None
    return {name: _pin_one(read_history(engine, given.table), given, marks) for name, given in inputs.items()}


def read(engine: Engine, pinned: Pin, where: str | None = None) -> "DataFrame":
    """Return the frame of a pinned input, narrowed by a SQL predicate that Iceberg prunes files by."""
    name = engine.catalog.sql_name(pinned.table)
    if pinned.snapshot_id is None:
        # A table without a snapshot cannot change under our feet before it has one, and then the pin is no longer it.
        frame = engine.spark.table(name).where("false")
    elif pinned.since_snapshot_id is None:
        frame = engine.spark.read.option("versionAsOf", str(pinned.snapshot_id)).table(name)
    elif pinned.is_empty:
        frame = engine.spark.read.option("versionAsOf", str(pinned.snapshot_id)).table(name).where("false")
    else:
        bounds = {"start-snapshot-id": str(pinned.since_snapshot_id), "end-snapshot-id": str(pinned.snapshot_id)}
        frame = engine.spark.read.format("iceberg").options(**bounds).load(name)
    return frame.where(where) if where else frame


def read_inputs(
    engine: Engine, inputs: Mapping[str, Input], pins: Mapping[str, Pin], run: Run
) -> "dict[str, DataFrame]":
    """Return the frames of a write's inputs, each narrowed to the run's partitions where it asks for that."""
    frames = {}
    for name, given in inputs.items():
        where = run.partitions.predicate(given.by) if given.by and run.partitions else None
        frames[name] = read(engine, pins[name], where)
    return frames


def _pin_one(source: History, given: Input, marks: History | None) -> Pin:
    if given.mode == "as_of":
        return Pin(given.table, _resolve(source, given))
    head = source.main
    if head is None:
        return Pin(given.table, None, rows=0)
    if given.mode == "latest" or marks is None:
        return Pin(given.table, head.snapshot_id, rows=head.rows)
    return _pin_incremental(source, given.table, marks.watermark(given.table))


def _pin_incremental(source: History, table: str, since: int | None) -> Pin:
    assert source.main is not None
    head = source.main
    if since is None:
        return Pin(table, head.snapshot_id, rows=head.rows, note="read in full: the first time")
    if since == head.snapshot_id:
        return Pin(table, head.snapshot_id, since, rows=0)
    added = source.between(since, head.snapshot_id) if since in source.snapshots else None
    if added is None:
        return Pin(table, head.snapshot_id, rows=head.rows, note=f"read in full: snapshot {since} is gone from main")
    rewriting = [found for found in added if found.operation in ("overwrite", "delete")]
    if rewriting:
        note = f"read in full: snapshot {rewriting[0].snapshot_id} is a {rewriting[0].operation}"
        return Pin(table, head.snapshot_id, rows=head.rows, note=note)
    rows = sum(found.count("added-records") for found in added if found.operation == "append")
    return Pin(table, head.snapshot_id, since, rows=rows)


def _resolve(source: History, given: Input) -> int:
    if given.timestamp is not None:
        return source.at(given.timestamp).snapshot_id
    if given.tag is not None:
        if given.tag not in source.refs:
            known = ", ".join(sorted(source.refs)) or "none"
            raise SnapshotNotFound(f"{given.table} has no tag or branch {given.tag!r}; it has {known}.")
        return source.refs[given.tag]
    if given.snapshot_id not in source.snapshots:
        raise SnapshotNotFound(
            f"{given.table} has no snapshot {given.snapshot_id}; it keeps {len(source.snapshots)} snapshots.",
            next_step="It may have expired; the history table lists those that are kept.",
        )
    return given.snapshot_id
