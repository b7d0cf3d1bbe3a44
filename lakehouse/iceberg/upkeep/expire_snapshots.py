"""Expiry: snapshots that are older than a moment go, with the files that only they name.

Only Spark's procedure expires and deletes, always from the old end: the incremental clean-up of
the Java API has removed live files (iceberg#13568, #17304), and a snapshot out of the middle
breaks who reads increments.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lakehouse.iceberg.commit.kept_watermarks import carry_watermarks
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import MAIN, History, Snapshot, history_of
from lakehouse.iceberg.metadata.measured_health import SnapshotPin
from lakehouse.iceberg.upkeep.lost_race import free_lock, run_step, skipped
from lakehouse.iceberg.upkeep.readers_view import ReadersView
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult
from lakehouse.iceberg.upkeep.stored_files import (
    FILES_OF_OTHERS,
    StoredFiles,
    bytes_of,
    existing,
    keeps_all_files,
    missing,
)
from lakehouse.tables.quoting import identifier, literal

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.refs import SnapshotRef

_STEP: StepName = "expire_snapshots"
_NAMED_PATHS = 5


def expire_snapshots(
    engine: Engine,
    table: str,
    *,
    older_than: datetime,
    keep: int,
    pins: Sequence[SnapshotPin] = (),
) -> StepResult:
    """Expire the snapshots of a table that are older than a moment, but the newest of main and
    what is pinned; tags and branches keep what they need, and those past their end go.

    What main says of its inputs is carried on first, so that no reader of it starts anew.

    :param keep: how many snapshots of main are kept whatever their age.
    :param pins: what still needs snapshots; the moment is moved back to the first that is
        needed.
    :returns: `partial` with the paths where files could not be deleted, which Spark does not
        tell.
    """
    return run_step(table, _STEP, lambda: _expire(engine, table, older_than, keep, pins))


def _expire(
    engine: Engine, table: str, older_than: datetime, keep: int, pins: Sequence[SnapshotPin]
) -> StepResult:
    with free_lock(engine, table):
        loaded = engine.catalog.load(table)
        if keeps_all_files(loaded):
            return skipped(table, _STEP, FILES_OF_OTHERS)
        moment, held_back_by = earliest_needed(history_of(table, loaded), older_than, pins)
        if not expiring(loaded, moment, keep):
            return skipped(table, _STEP, _nothing_to_expire(moment, keep, held_back_by))
        carry_watermarks(engine, table)
        loaded = engine.catalog.load(table)
        before = StoredFiles.of(loaded)
        _call_procedure(engine, table, moment, keep)
        return _verified(engine, table, loaded, before, held_back_by)


def earliest_needed(
    history: History, older_than: datetime, pins: Sequence[SnapshotPin]
) -> tuple[datetime, tuple[str, ...]]:
    """Return the moment up to which snapshots may go, and the owners of what holds it back.

    A tag or branch is kept by Iceberg itself, and what came before it may go.
    """
    heads = set(history.refs.values())
    needed = {}
    for pin in pins:
        if pin.needs_later or pin.snapshot_id not in heads:
            needed[pin.owner] = _first_moment(history, pin)
    moment = min([older_than, *needed.values()])
    owners = tuple(owner for owner, at in needed.items() if at < older_than and at == moment)
    return moment, owners


def _first_moment(history: History, pin: SnapshotPin) -> datetime:
    """Return the earliest moment of the snapshots that a pin needs: one that was staged for
    long may be older than its parent.
    """
    moments = [pin.committed_at]
    for snapshot in history.line:
        moments.append(snapshot.committed_at)
        if snapshot.snapshot_id == pin.snapshot_id:
            return min(moments)
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
    """Yield the snapshots that a branch or tag keeps of those that its head descends from."""
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


def _nothing_to_expire(moment: datetime, keep: int, held_back_by: tuple[str, ...]) -> str:
    reason = f"no snapshot but the newest {keep} is older than {moment:%Y-%m-%d %H:%M}"
    if held_back_by:
        reason += f", which is still needed by {', '.join(held_back_by)}"
    return reason


def _call_procedure(engine: Engine, table: str, older_than: datetime, keep: int) -> None:
    catalog = engine.catalog.name
    engine.sql(
        f"CALL {identifier(catalog)}.system.expire_snapshots(table =>"
        f" {literal(f'{catalog}.{table}')}, older_than => {literal(older_than)}, retain_last =>"
        f" {keep})"
    ).collect()


def _verified(
    engine: Engine,
    table: str,
    loaded: "Table",
    before: StoredFiles,
    held_back_by: tuple[str, ...],
) -> StepResult:
    now = engine.catalog.load(table)
    after = StoredFiles.of(now)
    expired = {snapshot.snapshot_id for snapshot in loaded.snapshots()}
    expired -= {snapshot.snapshot_id for snapshot in now.snapshots()}
    unnamed = {key: file for key, file in before.named.items() if key not in after.named}
    remaining = existing(now, unnamed, after.listed)
    gone = [before.listed[key] for key in unnamed if key in before.listed.keys() - after.listed]
    figures = {
        "expired_snapshots": len(expired),
        "removed_files": len(unnamed) - len(remaining),
        "removed_bytes": bytes_of(gone),
    }
    lost = missing(now, after.named, after.listed)
    changes = ReadersView.of(loaded).changes(ReadersView.of(now))
    if lost:
        changes.append(f"{len(lost)} files that are still named are not there: {_first(lost)}")
    if changes:
        return StepResult(table, _STEP, "failed", "; ".join(changes), figures)
    if remaining:
        reason = f"{len(remaining)} files could not be deleted"
        return StepResult(table, _STEP, "partial", reason, figures, tuple(remaining))
    reason = f"older ones are needed by {', '.join(held_back_by)}" if held_back_by else ""
    return StepResult(table, _STEP, "done", reason, figures)


def _first(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _NAMED_PATHS} more" if len(paths) > _NAMED_PATHS else ""
    return ", ".join(paths[:_NAMED_PATHS]) + more
