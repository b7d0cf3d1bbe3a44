"""What a table's metadata keeps of snapshots that have gone: statistics, and old metadata.json
files, whose summaries may name partitions by their values; no JVM.
"""

from typing import TYPE_CHECKING

from lakehouse.iceberg.erasure.borrowed_properties import borrowed_properties, give_back
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.metadata_files import parse_metadata
from lakehouse.iceberg.metadata.pyiceberg_internals import WRITABLE_FORMATS, commit_updates
from lakehouse.iceberg.upkeep.lost_race import free_lock, run_step, skipped
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult

if TYPE_CHECKING:
    from pyiceberg.table import Table

_STATISTICS: StepName = "remove_statistics"
_METADATA: StepName = "remove_old_metadata"
_VERSIONS, _DELETES = (
    "write.metadata.previous-versions-max",
    "write.metadata.delete-after-commit.enabled",
)


def remove_statistics(engine: Engine, table: str) -> StepResult:
    """Remove the statistics of a table but those of the snapshot that main has, which upkeep
    computed since.
    """
    return run_step(table, _STATISTICS, lambda: _remove_statistics(engine, table))


def _remove_statistics(engine: Engine, table: str) -> StepResult:
    from pyiceberg.table.update import (
        RemovePartitionStatisticsUpdate,
        RemoveStatisticsUpdate,
        TableUpdate,
    )

    with free_lock(engine, table):
        loaded = engine.catalog.load(table)
        current = loaded.metadata.current_snapshot_id
        old = [file for file in loaded.metadata.statistics if file.snapshot_id != current]
        old_of_partitions = [
            file for file in loaded.metadata.partition_statistics if file.snapshot_id != current
        ]
        if not old and not old_of_partitions:
            return skipped(table, _STATISTICS, "there are none of an older snapshot")
        if loaded.format_version not in WRITABLE_FORMATS:
            reason = f"{len(old) + len(old_of_partitions)} go with their snapshots, not before"
            return StepResult(table, _STATISTICS, "partial", reason)
        updates: list[TableUpdate] = []
        for file in old:
            of_snapshot = {"snapshot-id": file.snapshot_id}
            updates.append(RemoveStatisticsUpdate.model_validate(of_snapshot))
        for partitions_file in old_of_partitions:
            of_snapshot = {"snapshot-id": partitions_file.snapshot_id}
            updates.append(RemovePartitionStatisticsUpdate.model_validate(of_snapshot))
        commit_updates(loaded, updates)
        paths = {file.statistics_path for file in (*old, *old_of_partitions)}
        for path in paths:
            if loaded.io.new_input(path).exists():
                loaded.io.delete(path)
        return StepResult(table, _STATISTICS, "done", "", {"removed_files": len(paths)})


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
        figures = {"removed_files": len(before - _logged(loaded)) - len(remaining)}
        if remaining:
            reason = f"{len(remaining)} files could not be deleted"
            return StepResult(table, _METADATA, "partial", reason, figures, tuple(remaining))
        return StepResult(table, _METADATA, "done", "", figures)


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
