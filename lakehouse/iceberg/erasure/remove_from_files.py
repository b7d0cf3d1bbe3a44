"""What Iceberg keeps of rows that are deleted goes, step by step, in the one order that works.

Files are written again first, since old snapshots can only go once nothing needs them; then the
manifests that tell of removed files, then the snapshots, and what only they named. Each step
looks at the table as it is, so that a call after one that was killed goes on from there.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType

from lakehouse.iceberg.commit.kept_watermarks import carried_properties, carry_watermarks
from lakehouse.iceberg.commit.snapshot_properties import commit_without_rows
from lakehouse.iceberg.erasure.removal_steps import (
    clean_manifests,
    remove_old_metadata,
    rewrite_erased_files,
)
from lakehouse.iceberg.erasure.remove_unnamed import (
    refuse_where_written,
    remove_unnamed,
    unnamed_files,
)
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import MAIN, History, read_history
from lakehouse.iceberg.metadata.location_files import LocationFile
from lakehouse.iceberg.metadata.measured_health import SnapshotPin
from lakehouse.iceberg.metadata.named_files import all_named_files
from lakehouse.iceberg.read.stale_tables import has_news
from lakehouse.iceberg.upkeep.expire_snapshots import expire_snapshots, find_pins
from lakehouse.iceberg.upkeep.free_lock import CommitConflict, free_lock
from lakehouse.iceberg.upkeep.remove_lost_metadata import remove_lost_metadata
from lakehouse.iceberg.upkeep.remove_orphans import YOUNGEST, remove_orphans
from lakehouse.iceberg.upkeep.step_result import StepResult
from lakehouse.tables.table import IcebergTable

NO_TABLES: Mapping[str, Collection[str]] = MappingProxyType({})


def remove_from_files(
    engine: Engine,
    tables: Iterable[IcebergTable],
    request: str,
    *,
    now: bool,
    readers: Mapping[str, Collection[str]] = NO_TABLES,
    dependents: Mapping[str, Collection[str]] = NO_TABLES,
) -> tuple[StepResult, ...]:
    """Remove what Iceberg retains of rows that `delete_rows` deleted: data files under delete
    files, entries of removed files in manifests, past snapshots, old metadata.json files, and
    orphan files.

    A step that gives way to a writer is `skipped` with `had_conflict`. What is retained for a
    while is `partial`, with the reason. A repeated call does the rest.

    :param now: whether snapshots go that incremental readers need, and young orphan files. No
        past state of the tables can be read any more then.
    :param readers: by table, the tables that read it incrementally.
    :param dependents: by table, all tables that are computed from it.
    :raises TableBusy: with `now`, if a table, or one whose files are in its location, is being
        written.
    """
    names = [table.name for table in tables if engine.catalog.has(table.name)]
    for name in names if now else ():
        refuse_where_written(engine, name)
    results: list[StepResult] = []
    for name in names:
        pinned_by = () if now else readers.get(name, ())
        results += _remove_named(
            engine, name, request, dependents.get(name, ()), pinned_by=pinned_by
        )
    if now:
        return (*results, *remove_unnamed(engine, names))
    timestamp = datetime.now(UTC)
    for name in names:
        results.append(remove_lost_metadata(engine, name, older_than=timestamp))
        results.append(_remove_orphans(engine, name, timestamp))
    return tuple(results)


def _remove_named(
    engine: Engine,
    table: str,
    request: str,
    dependents: Iterable[str],
    *,
    pinned_by: Collection[str],
) -> list[StepResult]:
    results = [
        rewrite_erased_files(engine, table, request),
        clean_manifests(engine, table, request),
    ]
    _move_watermarks(engine, table, dependents)
    return [
        *results,
        _expire(engine, table, find_pins(engine, table, pinned_by)),
        remove_old_metadata(engine, table),
    ]


def _expire(engine: Engine, table: str, pins: Sequence[SnapshotPin]) -> StepResult:
    """Expire all snapshots that no branch or tag points at; say where some are kept."""
    result = expire_snapshots(
        engine, table, older_than=datetime.now(UTC), keep=1, pins=[*_without_refs(pins)]
    )
    history = read_history(engine, table)
    kept = history.snapshots.keys() - set(history.refs.values())
    if not kept or result.outcome not in ("done", "skipped") or result.had_conflict:
        return result
    reason = f"{len(kept)} past snapshots are kept: {result.reason or 'by their branches'}"
    return replace(result, outcome="partial", reason=reason)


def _without_refs(pins: Iterable[SnapshotPin]) -> Iterable[SnapshotPin]:
    """Leave out the tags and branches, which keep what they point at by themselves."""
    return (pin for pin in pins if pin.needs_later)


def _remove_orphans(engine: Engine, table: str, moment: datetime) -> StepResult:
    """Remove old files without a name, and say when the younger ones are due."""
    unnamed = _unnamed(engine, table)
    if not any(file.modified_at + YOUNGEST <= moment for file in unnamed):
        # The procedure would start Spark to find nothing.
        reason = "no file that is a day old is without a name"
        result = StepResult(table, "remove_orphans", "skipped", reason)
    else:
        result = remove_orphans(engine, table, older_than=moment)
    # The procedure deletes files of a day or older.
    ages = [file.modified_at for file in _unnamed(engine, table)]
    due = max(ages) + YOUNGEST if ages else None
    if due is None or result.outcome not in ("done", "skipped") or result.had_conflict:
        return result
    if due <= moment and result.reason:
        # It would be due for ever.
        reason = f"old files without a name stay: {result.reason}"
        return replace(result, outcome="partial", reason=reason)
    reason = f"files without a name are removed from {due:%Y-%m-%d %H:%M} UTC on"
    step_metrics = {**result.step_metrics, "due_at": due.timestamp()}
    return replace(result, outcome="partial", reason=reason, step_metrics=step_metrics)


def _unnamed(engine: Engine, table: str) -> list[LocationFile]:
    loaded = engine.catalog.load(table)
    return list(unnamed_files(loaded, frozenset(all_named_files(loaded))).values())


def _move_watermarks(engine: Engine, table: str, readers: Iterable[str]) -> tuple[str, ...]:
    """Commit to each reader that has read all rows of a table that it has read the current
    snapshot; return the readers that were moved.

    An erasure is not news for a reader. Without the move, an incremental reader would need its
    last snapshot, which has the erased rows, forever; another reader would count as stale once
    that snapshot is expired. A table that is being written, and a reader with unread rows, stay
    as they are until the next call.

    :param readers: names of the tables that are computed from this one.
    """
    source = read_history(engine, table)
    there = [reader for reader in readers if engine.catalog.has(reader)]
    behind = [one for one in there if _is_behind(source, read_history(engine, one))]
    if not behind:
        return ()
    try:
        with free_lock(engine, table):
            # Expiry would commit it after this, and leave the readers behind once more.
            carry_watermarks(engine, table)
    except CommitConflict:
        return ()
    return tuple(reader for reader in behind if _move(engine, table, reader))


def _is_behind(source: History, target: History) -> bool:
    """Whether a reader last read a snapshot that is no more main's, and has no rows to read."""
    since = target.watermark(source.table)
    if source.main is None or since is None or since not in source.snapshots:
        return False
    return since != source.main.snapshot_id and not has_news(source, target)


def _move(engine: Engine, table: str, reader: str) -> bool:
    try:
        with free_lock(engine, reader):
            # Either may have been written since.
            source, target = read_history(engine, table), read_history(engine, reader)
            if not _is_behind(source, target):
                return False
            carried = carried_properties(target, "upkeep")
            moved = replace(carried, inputs={**carried.inputs, table: source.refs[MAIN]})
            commit_without_rows(engine, reader, moved.to_summary())
    except CommitConflict:
        return False
    return True
