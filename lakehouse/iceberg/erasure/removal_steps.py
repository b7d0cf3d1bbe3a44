"""The steps that remove what data files, manifests and metadata.json files retain of deleted rows.

Each step checks the table's current state, so that a repeated call continues.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from lakehouse.iceberg.commit.branch import is_audit
from lakehouse.iceberg.erasure.borrowed_properties import borrowed_properties, give_back
from lakehouse.iceberg.erasure.commit_files import FileChange, commit_files, has_removed_entries
from lakehouse.iceberg.erasure.erasure_commits import erasure_properties
from lakehouse.iceberg.erasure.find_rows import planned_files
from lakehouse.iceberg.erasure.position_deletes import (
    DeletedPositions,
    has_delete_files,
    live_delete_files,
    needless_delete_files,
)
from lakehouse.iceberg.erasure.rewritten_file import rewrite_without
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import MAIN, history_of
from lakehouse.iceberg.metadata.manifests import read_files, read_manifests
from lakehouse.iceberg.metadata.metadata_files import parse_metadata
from lakehouse.iceberg.metadata.pyiceberg_internals import WRITABLE_FORMATS
from lakehouse.iceberg.upkeep.free_lock import (
    CHUNK_BYTES,
    CommitConflict,
    free_lock,
    run_step,
    skipped,
)
from lakehouse.iceberg.upkeep.readers_view import changed_row_counts, view_of
from lakehouse.iceberg.upkeep.rewrite_procedures import (
    TARGET_PROPERTY,
    rewrite_deleted_from,
    rewrite_manifests_of_spec,
    rewrite_position_deletes,
)
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask, Table

_CLEAN: StepName = "clean_manifests"
_METADATA: StepName = "remove_old_metadata"
_VERSIONS, _DELETES = (
    "write.metadata.previous-versions-max",
    "write.metadata.delete-after-commit.enabled",
)
_REWRITE: StepName = "rewrite_erased_files"
_FILES_AT_ONCE = 4
"""Of each, one row group is held."""


def rewrite_erased_files(engine: Engine, table: str, request: str) -> StepResult:
    """Write the data files of main again that have deleted rows, and drop the delete files.

    Each chunk of 512 MiB is one commit, and holds the table's lock. Where Spark alone writes
    such files, its procedure does all at once.

    :returns: `skipped` where no file has deleted rows, or a writer came first; `partial` where
        it came after some of them, which stay.
    """
    return run_step(table, _REWRITE, lambda: _rewrite(engine, table, request))


def _rewrite(engine: Engine, table: str, request: str) -> StepResult:
    loaded = engine.catalog.load(table)
    main = loaded.current_snapshot()
    if main is None or not has_delete_files(loaded, main.snapshot_id):
        return skipped(table, _REWRITE, "no file has rows that were deleted")
    kinds = {(file.content, file.format) for file in read_files(loaded)}
    is_writable = loaded.format_version in WRITABLE_FORMATS
    if not is_writable or kinds - {("data", "parquet"), ("position deletes", "parquet")}:
        return _rewrite_by_spark(engine, table)
    return _rewrite_in_chunks(engine, table, request)


def _rewrite_in_chunks(engine: Engine, table: str, request: str) -> StepResult:
    files = size_bytes = 0
    # What a delete file says never changes: it is read once for all chunks.
    deletes = DeletedPositions(engine.catalog.load(table))
    while True:
        try:
            with free_lock(engine, table):
                chunk = _rewrite_chunk(engine, table, request, deletes)
        except CommitConflict as lost:
            if not files:
                raise
            reason = f"{lost}, after some of the files"
            step_metrics = {"rewritten_files": files, "rewritten_bytes": size_bytes}
            return StepResult(
                table, _REWRITE, "partial", reason, step_metrics, had_conflict=True
            )
        files += len(chunk)
        size_bytes += sum(task.file.file_size_in_bytes for task in chunk)
        if not chunk:
            step_metrics = {"rewritten_files": files, "rewritten_bytes": size_bytes}
            return StepResult(table, _REWRITE, "done", "", step_metrics)


def _rewrite_chunk(
    engine: Engine, table: str, request: str, deletes: DeletedPositions
) -> "list[FileScanTask]":
    """Write some of the files again in one commit, and return them; none where there are no
    more.
    """
    loaded = engine.catalog.load(table)
    history = history_of(table, loaded)
    assert history.main is not None
    tasks = planned_files(loaded, history.main.snapshot_id)
    with_deletes = [task for task in tasks if len(deletes.of(task))]
    chunk = _first_chunk(with_deletes)
    live = {task.file.file_path for task in tasks} - {task.file.file_path for task in chunk}
    delete_files = live_delete_files(loaded, history.main.snapshot_id)
    needless = needless_delete_files(deletes, delete_files, live)
    if not chunk and not needless:
        return []
    with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
        rewritten = pool.map(
            lambda task: rewrite_without(loaded, task.file, deletes.of(task)), chunk
        )
        added = [file for file in rewritten if file is not None]
    removed = [*(task.file for task in chunk), *needless]
    commit_files(
        loaded,
        MAIN,
        FileChange(added, removed),
        erasure_properties(history, MAIN, request, 0),
        operation="replace",
        rewrites_manifests=True,
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
        before, history = view_of(engine, table)
        rewritten = rewrite_deleted_from(engine, table)
        if engine.catalog.load(table).format_version in WRITABLE_FORMATS:
            rewrite_position_deletes(engine, table)
        after, _ = view_of(engine, table)
        changes = before.changes(after) + changed_row_counts(engine, table, history)
    step_metrics = {"rewritten_files": rewritten.files, "rewritten_bytes": rewritten.size_bytes}
    if changes:
        return StepResult(table, _REWRITE, "failed", "; ".join(changes), step_metrics)
    if rewritten.failed_files:
        reason = f"{rewritten.failed_files} files could not be written again"
        return StepResult(table, _REWRITE, "partial", reason, step_metrics)
    return StepResult(table, _REWRITE, "done", "", step_metrics)


def clean_manifests(engine: Engine, table: str, request: str) -> StepResult:
    """Write the manifests of each branch and tag again that say something of removed files; a
    tag then points at a snapshot of its own with the same rows.

    :returns: `partial` with the branches and tags whose manifests still do: of format 3, which
        Spark alone writes, those of main can be cleaned and of no other.
    """
    return run_step(table, _CLEAN, lambda: _clean_all(engine, table, request))


def _clean_all(engine: Engine, table: str, request: str) -> StepResult:
    with free_lock(engine, table):
        give_back(engine, table)
        unclean = _unclean(engine, table)
        if not unclean:
            return skipped(table, _CLEAN, "no manifest says anything of removed files")
        for ref in unclean:
            if engine.catalog.load(table).format_version in WRITABLE_FORMATS:
                _clean_ref(engine, table, ref, request)
            elif ref == MAIN:
                _clean_main_by_spark(engine, table)
        remaining = tuple(_unclean(engine, table))
        step_metrics = {"cleaned_refs": len(unclean) - len(remaining)}
        if remaining:
            reason = f"manifests of {', '.join(remaining)} still tell of removed files"
            return StepResult(table, _CLEAN, "partial", reason, step_metrics, remaining)
        return StepResult(table, _CLEAN, "done", "", step_metrics)


def _unclean(engine: Engine, table: str) -> list[str]:
    loaded = engine.catalog.load(table)
    return [
        name
        for name, ref in sorted(loaded.metadata.refs.items())
        if not is_audit(name) and has_removed_entries(loaded, ref.snapshot_id)
    ]


def _clean_ref(engine: Engine, table: str, ref: str, request: str) -> None:
    loaded = engine.catalog.load(table)
    commit_files(
        loaded,
        ref,
        FileChange(),
        erasure_properties(history_of(table, loaded), ref, request, 0),
        operation="replace",
        rewrites_manifests=True,
    )


def _clean_main_by_spark(engine: Engine, table: str) -> None:
    """Rewrite the manifests of each partition spec.

    The procedure leaves one that is alone as it is, unless the target size has it made into
    more than one.
    """
    loaded = engine.catalog.load(table)
    manifests = read_manifests(loaded)
    for spec_id in sorted({manifest.partition_spec_id for manifest in manifests}):
        sizes = [
            manifest.manifest_length
            for manifest in manifests
            if manifest.partition_spec_id == spec_id
        ]
        target_bytes = str(max(1, min(sizes) // 2))
        with borrowed_properties(engine, table, {TARGET_PROPERTY: target_bytes}):
            rewrite_manifests_of_spec(engine, table, spec_id)


def remove_old_metadata(engine: Engine, table: str) -> StepResult:
    """Remove the metadata.json files that the log names, where one tells of snapshots that have
    gone since; the last one before the current one stays.
    """
    return run_step(table, _METADATA, lambda: _remove_old_metadata(engine, table))


def _remove_old_metadata(engine: Engine, table: str) -> StepResult:
    with free_lock(engine, table):
        give_back(engine, table)
        loaded = engine.catalog.load(table)
        before = _logged(loaded)
        if not _tell_of_others(loaded, before):
            return skipped(table, _METADATA, "none tells of a snapshot that has gone")
        with borrowed_properties(engine, table, {_VERSIONS: "1", _DELETES: "true"}):
            # Giving them back is one more commit, after which the log names no file of before.
            pass
        loaded = engine.catalog.load(table)
        remaining = []
        for path in before - _logged(loaded):
            if loaded.io.new_input(path).exists():
                loaded.io.delete(path)
            if loaded.io.new_input(path).exists():
                remaining.append(path)
        step_metrics = {"removed_files": len(before - _logged(loaded)) - len(remaining)}
        if remaining:
            reason = f"{len(remaining)} files could not be deleted"
            return StepResult(
                table, _METADATA, "partial", reason, step_metrics, tuple(remaining)
            )
        return StepResult(table, _METADATA, "done", "", step_metrics)


def _logged(table: "Table") -> set[str]:
    return {entry.metadata_file for entry in table.metadata.metadata_log}


def _tell_of_others(table: "Table", paths: set[str]) -> bool:
    """Whether any of some metadata.json files tells of a snapshot that the table has no more."""
    known = {snapshot.snapshot_id for snapshot in table.snapshots()}
    for path in sorted(paths):
        file = table.io.new_input(path)
        if not file.exists():
            continue
        with file.open() as stream:
            content = stream.read()
        snapshots = parse_metadata(path, content).get("snapshots") or []
        told = {snapshot["snapshot-id"] for snapshot in snapshots}
        if told - known:
            return True
    return False
