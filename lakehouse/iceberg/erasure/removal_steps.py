"""Rewrites data files and manifests that retain deleted rows. A repeated call continues."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from lakehouse.iceberg.commit.branch import is_audit
from lakehouse.iceberg.erasure.commit_files import FileChange, commit_files, has_removed_entries
from lakehouse.iceberg.erasure.erasure_commits import erasure_properties
from lakehouse.iceberg.erasure.find_rows import planned_files
from lakehouse.iceberg.erasure.position_deletes import (
    DeletedPositions,
    live_delete_files,
)
from lakehouse.iceberg.erasure.rewritten_file import rewrite_without
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import MAIN, history_of
from lakehouse.iceberg.metadata.manifests import read_files, read_manifests
from lakehouse.iceberg.metadata.pyiceberg_internals import WRITABLE_FORMATS
from lakehouse.iceberg.upkeep.free_lock import (
    CHUNK_BYTES,
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

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask

_CLEAN: StepName = "clean_manifests"
_REWRITE: StepName = "rewrite_erased_files"
_FILES_AT_ONCE = 4
"""Each has one row group in memory."""


def rewrite_erased_files(engine: Engine, table: str, request: str) -> StepResult:
    """Rewrite the data files of main that have deleted rows, and drop their delete files.

    Each chunk of 512 MiB is one commit. If only Spark writes such files, its procedure rewrites
    all at once.
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
    remaining = {task.file.file_path for task in tasks} - {
        task.file.file_path for task in chunk
    }
    delete_files = live_delete_files(loaded, history.main.snapshot_id)
    unneeded = deletes.unneeded(delete_files, remaining)
    if not chunk and not unneeded:
        return []
    with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
        rewritten = pool.map(
            lambda task: rewrite_without(loaded, task.file, deletes.of(task)), chunk
        )
        added = [file for file in rewritten if file is not None]
    commit_files(
        loaded,
        MAIN,
        FileChange(added, [*(task.file for task in chunk), *unneeded]),
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
        rewritten = rewrite_deleted_from(engine, table)
        if engine.catalog.load(table).format_version in WRITABLE_FORMATS:
            rewrite_position_deletes(engine, table)
    step_metrics = {"rewritten_files": rewritten.files, "rewritten_bytes": rewritten.size_bytes}
    if rewritten.failed_files:
        reason = f"{rewritten.failed_files} files could not be rewritten"
        return StepResult(table, _REWRITE, "partial", reason, step_metrics)
    return StepResult(table, _REWRITE, "done", "", step_metrics)


def clean_manifests(engine: Engine, table: str, request: str) -> StepResult:
    """Rewrite the manifests of each branch and tag that have entries of removed files; a tag
    then points at a new snapshot with the same rows.

    :returns: `partial` with the branches and tags whose manifests still do: in format 3, only
        those of main can be cleaned.
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
