"""Column statistics of a table (distinct values) for join planning."""

from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import History, history_of
from lakehouse.iceberg.metadata.pyiceberg_internals import WRITABLE_FORMATS
from lakehouse.iceberg.upkeep.free_lock import free_lock, run_step, skipped
from lakehouse.iceberg.upkeep.newer_procedures import call_newer
from lakehouse.iceberg.upkeep.readers_view import ReadersView
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult
from lakehouse.tables.quoting import literal

if TYPE_CHECKING:
    from pyiceberg.table import Table

_STEP: StepName = "compute_statistics"


def compute_statistics(engine: Engine, table: str) -> StepResult:
    """Compute the statistics of a table's columns, which reads the entire table, and remove
    older ones; skipped if no row changed.
    """
    return run_step(table, _STEP, lambda: _compute(engine, table))


def _compute(engine: Engine, table: str) -> StepResult:
    with free_lock(engine, table):
        loaded = engine.catalog.load(table)
        history = history_of(table, loaded)
        if history.main is None or _is_up_to_date(loaded, history):
            return skipped(table, _STEP, "no row changed since the last computation")
        name = literal(f"{engine.catalog.name}.{table}")
        call_newer(engine, f"compute_table_stats(table => {name})")
        now = engine.catalog.load(table)
        old = _remove_older(now, history.main.snapshot_id)
        changes = ReadersView.of(loaded).changes(ReadersView.of(engine.catalog.load(table)))
        remaining = tuple(path for path in old if now.io.new_input(path).exists())
        step_metrics = {"removed_files": len(old) - len(remaining)}
        if changes:
            return StepResult(table, _STEP, "failed", "; ".join(changes), step_metrics)
        if remaining:
            reason = f"{len(remaining)} files could not be deleted"
            return StepResult(table, _STEP, "partial", reason, step_metrics, remaining)
        return StepResult(table, _STEP, "done", "", step_metrics)


def _is_up_to_date(table: "Table", history: History) -> bool:
    """Whether statistics exist for a snapshot after which rows were only moved between files."""
    with_statistics = {file.snapshot_id for file in table.metadata.statistics}
    for snapshot in history.line:
        if snapshot.snapshot_id in with_statistics:
            return True
        changes_rows = snapshot.operation != "replace" and (
            snapshot.operation != "append" or snapshot.count("added-records") > 0
        )
        if changes_rows:
            return False
    return False


def _remove_older(table: "Table", current_id: int) -> list[str]:
    """Remove the statistics of other snapshots from the metadata, then their files; return the
    paths.

    If PyIceberg cannot write the metadata, they are removed with their snapshots, since Iceberg
    has no procedure for it.
    """
    if table.format_version not in WRITABLE_FORMATS:
        return []
    old = [file for file in table.metadata.statistics if file.snapshot_id != current_id]
    if not old:
        return []
    with table.update_statistics() as update:
        for file in old:
            update.remove_statistics(file.snapshot_id)
    for file in old:
        table.io.delete(file.statistics_path)
    return [file.statistics_path for file in old]
