"""Data files whose rows were deleted are written again without them, and no others; the delete
files go with them.

A compaction would join small files on the way, and leave a file that has lost few rows. Here each
file is written for itself, so that the paths of all others stay.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from lakehouse.iceberg.erasure.commit_files import (
    FileChange,
    commit_files,
)
from lakehouse.iceberg.erasure.erasure_commits import erasure_properties
from lakehouse.iceberg.erasure.person_rows import NeedsSpark, planned_files
from lakehouse.iceberg.erasure.position_deletes import (
    DeletedPositions,
    has_delete_files,
    live_delete_files,
    needless_delete_files,
)
from lakehouse.iceberg.erasure.rewritten_file import has_bloom_filters, rewrite_without
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import MAIN, history_of
from lakehouse.iceberg.metadata.pyiceberg_internals import WRITABLE_FORMATS
from lakehouse.iceberg.upkeep.compact import CHUNK_BYTES
from lakehouse.iceberg.upkeep.lost_race import RaceLost, free_lock, run_step, skipped
from lakehouse.iceberg.upkeep.readers_view import changed_row_counts, view_of
from lakehouse.iceberg.upkeep.rewrite_procedures import (
    rewrite_deleted_from,
    rewrite_position_deletes,
)
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask

_STEP: StepName = "rewrite_erased_files"
_FILES_AT_ONCE = 4
"""Of each, one row group is held."""


def rewrite_erased_files(engine: Engine, table: str, request: str) -> StepResult:
    """Write the data files of main again that have deleted rows, and drop the delete files.

    Each chunk of 512 MiB is one commit, and holds the table's lock. Where Spark alone writes
    such files, its procedure does all at once.

    :returns: `skipped` where no file has deleted rows, or a writer came first; `partial` where
        it came after some of them, which stay.
    """
    return run_step(table, _STEP, lambda: _rewrite(engine, table, request))


def _rewrite(engine: Engine, table: str, request: str) -> StepResult:
    loaded = engine.catalog.load(table)
    main = loaded.current_snapshot()
    if main is None or not has_delete_files(loaded, main.snapshot_id):
        return skipped(table, _STEP, "no file has rows that were deleted")
    try:
        if loaded.format_version not in WRITABLE_FORMATS or has_bloom_filters(loaded):
            raise NeedsSpark("its files are written by Spark alone")
        planned_files(loaded, main.snapshot_id)
    except NeedsSpark:
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
        except RaceLost as lost:
            if not files:
                raise
            reason = f"{lost}, after some of the files"
            figures = {"rewritten_files": files, "rewritten_bytes": size_bytes}
            return StepResult(table, _STEP, "partial", reason, figures, lost_race=True)
        files += len(chunk)
        size_bytes += sum(task.file.file_size_in_bytes for task in chunk)
        if not chunk:
            figures = {"rewritten_files": files, "rewritten_bytes": size_bytes}
            return StepResult(table, _STEP, "done", "", figures)


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
            rewrite_position_deletes(engine, table, "")
        after, _ = view_of(engine, table)
        changes = before.changes(after) + changed_row_counts(engine, table, history)
    figures = {"rewritten_files": rewritten.files, "rewritten_bytes": rewritten.size_bytes}
    if changes:
        return StepResult(table, _STEP, "failed", "; ".join(changes), figures)
    if rewritten.failed_files:
        reason = f"{rewritten.failed_files} files could not be written again"
        return StepResult(table, _STEP, "partial", reason, figures)
    return StepResult(table, _STEP, "done", "", figures)
