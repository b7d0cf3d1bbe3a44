"""Expiry of old snapshots and of files that only they reference.

Only Spark's procedure is used, and always from the oldest snapshot: the incremental clean-up of
the Java API has removed live files (iceberg#13568, #17304), and a gap breaks incremental reads.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.branch import is_of_write
from lakehouse.iceberg.commit.kept_watermarks import carry_watermarks
from lakehouse.iceberg.metadata.health_metrics import SnapshotPin
from lakehouse.iceberg.metadata.snapshots import (
    MAIN,
    History,
    Snapshot,
    history_of,
    read_history,
)
from lakehouse.iceberg.upkeep.free_lock import free_lock, run_step, skipped
from lakehouse.iceberg.upkeep.remove_orphans import SHARED_FILES, keeps_all_files
from lakehouse.iceberg.upkeep.rewrite_procedures import call_procedure
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.refs import SnapshotRef

_STEP: StepName = "expire_snapshots"


def expire_snapshots(
    engine: Engine,
    table: str,
    *,
    older_than: datetime,
    keep: int,
    pins: Sequence[SnapshotPin] = (),
) -> StepResult:
    """Expire snapshots older than a timestamp, except the newest of main and pinned ones.

    Tags and branches keep their snapshots; expired ones are removed. Main's watermarks are
    carried forward first, so that its inputs are not read again in full.

    :param keep: number of main's snapshots to keep at any age.
    :param pins: references to snapshots; the timestamp is moved back to the first needed one.
    :returns: `done` also if a file was not deleted; it is then removed as an orphan.
    """
    return run_step(table, _STEP, lambda: _expire(engine, table, older_than, keep, pins))


def _expire(
    engine: Engine, table: str, older_than: datetime, keep: int, pins: Sequence[SnapshotPin]
) -> StepResult:
    with free_lock(engine, table):
        loaded = engine.catalog.load(table)
        if keeps_all_files(loaded):
            return skipped(table, _STEP, SHARED_FILES)
        cutoff, limited_by = earliest_needed(history_of(table, loaded), older_than, pins)
        if not expiring(loaded, cutoff, keep):
            reason = f"no snapshot but the newest {keep} is older than {cutoff:%Y-%m-%d %H:%MZ}"
            if limited_by:
                reason += f", which is still needed by {', '.join(limited_by)}"
            return skipped(table, _STEP, reason)
        carry_watermarks(engine, table)
        before = read_history(engine, table).snapshots
        removed_files = _call_procedure(engine, table, cutoff, keep)
        expired = before.keys() - read_history(engine, table).snapshots.keys()
    step_metrics = {"expired_snapshots": len(expired), "removed_files": removed_files}
    reason = f"older ones are needed by {', '.join(limited_by)}" if limited_by else ""
    return StepResult(table, _STEP, "done", reason, step_metrics)


def _call_procedure(engine: Engine, table: str, older_than: datetime, keep: int) -> int:
    """Return the number of removed files of all kinds."""
    (counts,) = call_procedure(
        engine, "expire_snapshots", table, older_than=older_than, retain_last=keep
    )
    return sum(counts)


def earliest_needed(
    history: History, older_than: datetime, pins: Sequence[SnapshotPin]
) -> tuple[datetime, tuple[str, ...]]:
    """Return the timestamp before which snapshots can expire, and the owners of limiting pins.

    Iceberg itself keeps tags and branches, and their ancestors can expire.
    """
    heads = set(history.refs.values())
    needed = {}
    for pin in pins:
        if pin.needs_later or pin.snapshot_id not in heads:
            needed[pin.owner] = _first_commit_time(history, pin)
    cutoff = min([older_than, *needed.values()])
    owners = tuple(owner for owner, at in needed.items() if at < older_than and at == cutoff)
    return cutoff, owners


def _first_commit_time(history: History, pin: SnapshotPin) -> datetime:
    """Return the earliest commit time of the snapshots that a pin needs; a snapshot that was
    staged for long can be older than its parent.
    """
    times = [pin.committed_at]
    for snapshot in history.line:
        times.append(snapshot.committed_at)
        if snapshot.snapshot_id == pin.snapshot_id:
            return min(times)
    return pin.committed_at


def expiring(table: "Table", older_than: datetime, keep: int) -> set[int]:
    """Return the snapshots that Iceberg would expire, by its rules for branches and tags."""
    history = history_of("", table)
    kept: set[int] = set()
    referenced: set[int] = set()
    for name, ref in table.metadata.refs.items():
        line = tuple(history.ancestors(ref.snapshot_id))
        referenced.update(snapshot.snapshot_id for snapshot in line)
        if not _is_past_its_end(name, ref, line[0]):
            kept.update(_kept_by(ref, line, older_than, keep))
    for snapshot in history.snapshots.values():
        if snapshot.snapshot_id not in referenced and snapshot.committed_at >= older_than:
            kept.add(snapshot.snapshot_id)
    return set(history.snapshots) - kept


def _kept_by(
    ref: "SnapshotRef", line: Sequence[Snapshot], older_than: datetime, keep: int
) -> Iterator[int]:
    """Yield the snapshots that a branch or tag retains."""
    if ref.snapshot_ref_type == "tag":
        yield line[0].snapshot_id
        return
    newest = ref.min_snapshots_to_keep or keep
    for place, snapshot in enumerate(line):
        if place >= newest and snapshot.committed_at < older_than:
            return
        yield snapshot.snapshot_id


def _is_past_its_end(name: str, ref: "SnapshotRef", head: Snapshot) -> bool:
    if name == MAIN or ref.max_ref_age_ms is None:
        return False
    age = datetime.now(UTC) - head.committed_at
    return age > timedelta(milliseconds=ref.max_ref_age_ms)


def find_pins(engine: Engine, table: str, readers: Iterable[str]) -> tuple[SnapshotPin, ...]:
    """Return the tags, users' branches, and watermarks of downstream tables, oldest first.

    A watermark is the snapshot that a downstream table last read. Its next read needs all later
    snapshots. A tag or branch only needs its own snapshot.

    :param readers: declared downstream tables; those that never read this one are ignored.
    """
    loaded = engine.catalog.load(table)
    history = history_of(table, loaded)
    pins = [*_refs(loaded, history), *_watermarks(engine, history, readers)]
    return tuple(sorted(pins, key=lambda pin: (pin.committed_at, pin.owner)))


def _refs(table: "Table", history: History) -> Iterator[SnapshotPin]:
    for name, ref in table.metadata.refs.items():
        if name == MAIN or is_of_write(name):
            continue
        head = history.snapshots[ref.snapshot_id]
        owner = f"{ref.snapshot_ref_type} {name}"
        yield SnapshotPin(owner, head.snapshot_id, head.committed_at)


def _watermarks(
    engine: Engine, history: History, readers: Iterable[str]
) -> Iterator[SnapshotPin]:
    for reader in readers:
        if not engine.catalog.has(reader):
            continue
        watermark = read_history(engine, reader).watermark(history.table)
        # An expired watermark cannot be retained.
        if watermark is not None and watermark in history.snapshots:
            at = history.snapshots[watermark].committed_at
            yield SnapshotPin(f"watermark of {reader}", watermark, at, needs_later=True)
