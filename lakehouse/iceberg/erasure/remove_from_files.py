"""Removes what Iceberg retains of deleted rows, in the only order that works.

Data files are rewritten first, then manifests with entries of removed files. Then snapshots
expire, and unreferenced files are removed. A repeated call continues.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

from lakehouse.errors import TableBusy
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.catalog.pyiceberg_internals import WRITABLE_FORMATS
from lakehouse.iceberg.commit.branch import is_audit
from lakehouse.iceberg.commit.kept_watermarks import carried_properties, carry_watermarks
from lakehouse.iceberg.commit.snapshot_properties import commit_without_rows
from lakehouse.iceberg.erasure.commit_files import FileChange, commit_files, has_removed_entries
from lakehouse.iceberg.erasure.delete_rows import rewrite_files
from lakehouse.iceberg.erasure.erasure_commits import erasure_properties
from lakehouse.iceberg.erasure.find_rows import planned_files
from lakehouse.iceberg.erasure.position_deletes import DeletedPositions, live_delete_files
from lakehouse.iceberg.erasure.remove_unnamed import STEP, remove_unnamed, require_not_written
from lakehouse.iceberg.metadata.manifests import read_files, read_manifests
from lakehouse.iceberg.metadata.snapshots import MAIN, History, history_of, read_history
from lakehouse.iceberg.read.stale_tables import has_news
from lakehouse.iceberg.upkeep.expire_snapshots import expire_snapshots, find_pins
from lakehouse.iceberg.upkeep.free_lock import (
    CHUNK_BYTES,
    CommitConflict,
    free_lock,
    run_step,
    skipped,
)
from lakehouse.iceberg.upkeep.rewrite_procedures import (
    TARGET_PROPERTY,
    rewrite_deleted_from,
    rewrite_manifests_of_spec,
    rewrite_position_deletes,
)
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult
from lakehouse.tables.quoting import literal
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask


_CLEAN: StepName = "clean_manifests"
_REWRITE: StepName = "rewrite_erased_files"


def rewrite_erased_files(engine: Engine, table: str, request: str) -> StepResult:
    """Rewrite the data files of main that have deleted rows, and drop their delete files.

    Each chunk of 512 MiB is one commit; Spark's procedure, if needed, rewrites all at once.
    """
    return run_step(table, _REWRITE, lambda: _rewrite(engine, table, request))


def _rewrite(engine: Engine, table: str, request: str) -> StepResult:
    loaded = engine.catalog.load(table)
    main = loaded.current_snapshot()
    if main is None or not live_delete_files(loaded, main.snapshot_id):
        return skipped(table, _REWRITE, "no file has deleted rows")
    kinds = {(file.content, file.format) for file in read_files(loaded)}
    is_writable = loaded.format_version in WRITABLE_FORMATS
    if not is_writable or kinds - {("data", "parquet"), ("position deletes", "parquet")}:
        return _rewrite_by_spark(engine, table)
    files = size_bytes = 0
    deletes = DeletedPositions(loaded)
    while True:
        with free_lock(engine, table):
            chunk = _rewrite_chunk(engine, table, request, deletes)
        files += len(chunk)
        size_bytes += sum(task.file.file_size_in_bytes for task in chunk)
        if not chunk:
            step_metrics = {"rewritten_files": files, "rewritten_bytes": size_bytes}
            return StepResult(table, _REWRITE, "done", "", step_metrics)


def _rewrite_chunk(
    engine: Engine, table: str, request: str, deletes: DeletedPositions
) -> "list[FileScanTask]":
    """Rewrite some of the files in one commit, and return them; none if all are rewritten."""
    loaded = engine.catalog.load(table)
    history = history_of(table, loaded)
    assert history.main is not None
    tasks = planned_files(loaded, history.main.snapshot_id)
    chunk = _first_chunk([task for task in tasks if len(deletes.of(task))])
    rewrite_files(
        loaded,
        MAIN,
        [(task.file, deletes.of(task)) for task in chunk],
        live_delete_files(loaded, history.main.snapshot_id),
        deletes,
        erasure_properties(history, MAIN, request, 0),
        operation="replace",
    )
    return chunk


def _first_chunk(tasks: "Sequence[FileScanTask]") -> "list[FileScanTask]":
    chunk: list[FileScanTask] = []
    size_bytes = 0
    for task in tasks:
        size_bytes += task.file.file_size_in_bytes
        if chunk and size_bytes > CHUNK_BYTES:
            break
        chunk.append(task)
    return chunk


def _rewrite_by_spark(engine: Engine, table: str) -> StepResult:
    with free_lock(engine, table):
        rewritten = rewrite_deleted_from(engine, table)
        if engine.catalog.load(table).format_version in WRITABLE_FORMATS:
            rewrite_position_deletes(engine, table)
    step_metrics = {"rewritten_files": rewritten.files, "rewritten_bytes": rewritten.size_bytes}
    if rewritten.failed_files:
        reason = f"{rewritten.failed_files} files could not be rewritten"
        return StepResult(table, _REWRITE, "partial", reason, step_metrics)
    return StepResult(table, _REWRITE, "done", "", step_metrics)


def clean_manifests(engine: Engine, table: str, request: str) -> StepResult:
    """Rewrite the manifests of each branch and tag that have entries of removed files.

    :returns: `partial` with the branches and tags whose manifests still do, as in format 3.
    """
    return run_step(table, _CLEAN, lambda: _clean_all(engine, table, request))


def _clean_all(engine: Engine, table: str, request: str) -> StepResult:
    with free_lock(engine, table):
        unclean = _unclean(engine, table)
        if not unclean:
            return skipped(table, _CLEAN, "no manifest has entries of removed files")
        for ref in unclean:
            loaded = engine.catalog.load(table)
            if loaded.format_version in WRITABLE_FORMATS:
                properties = erasure_properties(history_of(table, loaded), ref, request, 0)
                commit_files(
                    loaded,
                    ref,
                    FileChange(),
                    properties,
                    operation="replace",
                    rewrites_manifests=True,
                )
            elif ref == MAIN:
                _clean_main_by_spark(engine, table)
        remaining = tuple(_unclean(engine, table))
        step_metrics = {"cleaned_refs": len(unclean) - len(remaining)}
        if remaining:
            reason = f"manifests of {', '.join(remaining)} still have entries of removed files"
            return StepResult(table, _CLEAN, "partial", reason, step_metrics, remaining)
        return StepResult(table, _CLEAN, "done", "", step_metrics)


def _unclean(engine: Engine, table: str) -> list[str]:
    loaded = engine.catalog.load(table)
    return [
        name
        for name, ref in sorted(loaded.metadata.refs.items())
        if not is_audit(name) and has_removed_entries(loaded, ref.snapshot_id)
    ]


def _clean_main_by_spark(engine: Engine, table: str) -> None:
    """Rewrite the manifests of each partition spec.

    The procedure does not rewrite a single manifest, unless a smaller target size splits it.
    """
    loaded = engine.catalog.load(table)
    sizes: dict[int, list[int]] = {}
    for manifest in read_manifests(loaded):
        sizes.setdefault(manifest.partition_spec_id, []).append(manifest.manifest_length)
    name, key = engine.catalog.sql_name(table), literal(TARGET_PROPERTY)
    former = loaded.properties.get(TARGET_PROPERTY)
    try:
        for spec_id, of_spec in sorted(sizes.items()):
            target_bytes = literal(str(max(1, min(of_spec) // 2)))
            engine.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({key} = {target_bytes})")
            rewrite_manifests_of_spec(engine, table, spec_id)
    finally:
        restored = f"UNSET TBLPROPERTIES ({key})"
        if former is not None:
            restored = f"SET TBLPROPERTIES ({key} = {literal(former)})"
        engine.sql(f"ALTER TABLE {name} {restored}")


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
        require_not_written(engine, name)
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
    """Commit the current snapshot as read to each reader that has read all rows of a table.

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
                # Either can have been written since.
                source, target = read_history(engine, table), read_history(engine, reader)
                if _is_behind(source, target):
                    carried = carried_properties(target, "upkeep")
                    inputs = {**carried.inputs, table: source.refs[MAIN]}
                    moved = replace(carried, inputs=inputs)
                    commit_without_rows(engine, reader, moved.to_summary())
        except CommitConflict:
            continue


def _is_behind(source: History, target: History) -> bool:
    """Return whether a reader last read a former snapshot of main, and has no rows to read."""
    since = target.watermark(source.table)
    if source.main is None or since is None or since not in source.snapshots:
        return False
    return since != source.main.snapshot_id and not has_news(source, target)
