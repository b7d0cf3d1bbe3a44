"""Removes what Iceberg retains of deleted rows, in the only order that works.

Data files are rewritten first, then manifests with entries of removed files. Then snapshots
expire, and unreferenced files are removed. A repeated call continues.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType

from lakehouse.errors import TableBusy
from lakehouse.iceberg.commit.kept_watermarks import carried_properties, carry_watermarks
from lakehouse.iceberg.commit.snapshot_properties import commit_without_rows
from lakehouse.iceberg.erasure.removal_steps import (
    clean_manifests,
    rewrite_erased_files,
)
from lakehouse.iceberg.erasure.remove_unnamed import (
    STEP,
    refuse_where_written,
    remove_unnamed,
)
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import MAIN, History, read_history
from lakehouse.iceberg.read.stale_tables import has_news
from lakehouse.iceberg.upkeep.expire_snapshots import expire_snapshots, find_pins
from lakehouse.iceberg.upkeep.free_lock import CommitConflict, free_lock, skipped
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
    """Remove what Iceberg retains of rows that `delete_rows` deleted.

    A step that conflicts with a writer is `skipped` with `had_conflict`. If files have to be
    retained for a while, it is `partial`, with the reason.

    :param now: also expire snapshots that incremental readers need, and remove young orphan
        files. No past state of the tables can be read then.
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
        results.append(rewrite_erased_files(engine, name, request))
        results.append(clean_manifests(engine, name, request))
        _move_watermarks(engine, name, dependents.get(name, ()))
        results.append(_expire(engine, name, () if now else readers.get(name, ())))
    try:
        return (*results, *remove_unnamed(engine, names, keeps_young=not now))
    except TableBusy as error:
        if now:
            raise
        busy = [replace(skipped(name, STEP, str(error)), had_conflict=True) for name in names]
        return (*results, *busy)


def _expire(engine: Engine, table: str, readers: Collection[str]) -> StepResult:
    """Expire all snapshots that are not the head of a branch or tag."""
    # Branches and tags retain their heads anyway.
    pins = [pin for pin in find_pins(engine, table, readers) if pin.needs_later]
    result = expire_snapshots(engine, table, older_than=datetime.now(UTC), keep=1, pins=pins)
    history = read_history(engine, table)
    retained = history.snapshots.keys() - set(history.refs.values())
    if not retained or result.outcome not in ("done", "skipped") or result.had_conflict:
        return result
    reason = f"{len(retained)} past snapshots are retained: {result.reason or 'by branches'}"
    return replace(result, outcome="partial", reason=reason)


def _move_watermarks(engine: Engine, table: str, readers: Iterable[str]) -> None:
    """Commit to each reader that has read all rows of a table that it has read the current
    snapshot.

    An erasure is not news for a reader. Without the move, an incremental reader would need its
    last snapshot, which has the erased rows, forever; another reader would count as stale once
    that snapshot is expired. A table that is being written, and a reader with unread rows, are
    moved by the next call.

    :param readers: names of the tables that are computed from this one.
    """
    source = read_history(engine, table)
    existing = [reader for reader in readers if engine.catalog.has(reader)]
    behind = [one for one in existing if _is_behind(source, read_history(engine, one))]
    if not behind:
        return
    try:
        with free_lock(engine, table):
            # Expiry would commit it after this, and leave the readers behind again.
            carry_watermarks(engine, table)
    except CommitConflict:
        return
    for reader in behind:
        try:
            with free_lock(engine, reader):
                _move_watermark(engine, table, reader)
        except CommitConflict:
            continue


def _move_watermark(engine: Engine, table: str, reader: str) -> None:
    # Either can have been written since.
    source, target = read_history(engine, table), read_history(engine, reader)
    if _is_behind(source, target):
        carried = carried_properties(target, "upkeep")
        moved = replace(carried, inputs={**carried.inputs, table: source.refs[MAIN]})
        commit_without_rows(engine, reader, moved.to_summary())


def _is_behind(source: History, target: History) -> bool:
    """Return whether a reader last read a former snapshot of main, and has no rows to read."""
    since = target.watermark(source.table)
    if source.main is None or since is None or since not in source.snapshots:
        return False
    return since != source.main.snapshot_id and not has_news(source, target)
