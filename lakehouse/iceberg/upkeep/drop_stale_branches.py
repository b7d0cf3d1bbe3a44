"""Removal of branches of dead writers, and of blocked writes after their retention."""

from datetime import datetime

from lakehouse.iceberg.commit.branch import (
    begun_at,
    drop_abandoned_branches,
    drop_branch,
    is_refused,
)
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import History, read_history
from lakehouse.iceberg.upkeep.free_lock import free_lock, run_step, skipped
from lakehouse.iceberg.upkeep.readers_view import view_of
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult

_STEP: StepName = "drop_branches"


def drop_stale_branches(engine: Engine, table: str, *, refused_before: datetime) -> StepResult:
    """Drop the branches of dead writers, and of writes that were blocked before a timestamp;
    keep users' branches.
    """
    return run_step(table, _STEP, lambda: _drop(engine, table, refused_before))


def _drop(engine: Engine, table: str, refused_before: datetime) -> StepResult:
    with free_lock(engine, table) as log:
        before, history = view_of(engine, table)
        drop_abandoned_branches(engine, table, log)
        refused = _refused(history, refused_before)
        for branch in refused:
            drop_branch(engine, table, branch)
        after = read_history(engine, table)
        dropped = history.refs.keys() - after.refs.keys()
        if not dropped:
            return skipped(table, _STEP, "no branch is of a dead writer or past its time")
        changes = before.changes(view_of(engine, table)[0])
        step_metrics = {"dropped_branches": len(dropped)}
        if changes:
            return StepResult(table, _STEP, "failed", "; ".join(changes), step_metrics)
        remaining = tuple(branch for branch in refused if branch in after.refs)
        if remaining:
            reason = f"{len(remaining)} branches could not be dropped"
            return StepResult(table, _STEP, "partial", reason, step_metrics, remaining)
        return StepResult(table, _STEP, "done", "", step_metrics)


def _refused(history: History, before: datetime) -> list[str]:
    branches = []
    for branch in filter(is_refused, history.refs):
        begun = begun_at(branch)
        if begun and begun < before:
            branches.append(branch)
    return branches
