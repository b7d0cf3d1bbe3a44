"""Removal of branches of crashed writers, and of blocked writes after their retention."""

from datetime import datetime
from functools import partial

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.branch import (
    begun_at,
    drop_abandoned_branches,
    drop_branch,
    is_blocked,
    kept_until,
)
from lakehouse.iceberg.metadata.health_metrics import RefHealth
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.upkeep.free_lock import free_lock, run_step, skipped
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult
from lakehouse.tables.upkeep import duration_text
from lakehouse.upkeep.upkeep_plan import PlannedStep, StepInputs, count_text

_STEP: StepName = "drop_branches"


def plan_branches(inputs: StepInputs) -> PlannedStep:
    """Plan the removal of stale branches."""
    stale = [ref.name for ref in stale_branches(inputs)]
    names = ", ".join(stale[:3])
    if len(stale) > 3:
        names += f" and {len(stale) - 3} more"
    count = count_text(len(stale), "stale branch", "stale branches")
    reason = (
        f"{count}{f': {names}' if names else ''} (blocked ones of more than"
        f" {duration_text(inputs.policy.refused_for)}, and those of dead writers)"
    )
    ends = (kept_until(ref.name, inputs.policy.refused_for) for ref in inputs.health.refs)
    next_end = min((end for end in ends if end and end > inputs.now), default=None)
    work = partial(
        drop_stale_branches,
        table=inputs.health.table,
        blocked_before=inputs.now - inputs.policy.refused_for,
    )
    return inputs.planned(_STEP, reason, work, is_due=bool(stale), not_before=next_end)


def stale_branches(inputs: StepInputs) -> list[RefHealth]:
    """Return the expired branches of blocked writes and of crashed writers."""
    stale = []
    for ref in inputs.health.refs:
        until = kept_until(ref.name, inputs.policy.refused_for)
        if ref.is_branch and until and until < inputs.now:
            stale.append(ref)
    return stale


def drop_stale_branches(engine: Engine, table: str, *, blocked_before: datetime) -> StepResult:
    """Drop the branches of dead writers and of old blocked writes; keep users' branches."""
    return run_step(table, _STEP, lambda: _drop(engine, table, blocked_before))


def _drop(engine: Engine, table: str, blocked_before: datetime) -> StepResult:
    with free_lock(engine, table) as log:
        before = read_history(engine, table).refs.keys()
        drop_abandoned_branches(engine, table, log)
        for branch in filter(is_blocked, before):
            begun = begun_at(branch)
            if begun and begun < blocked_before:
                drop_branch(engine, table, branch)
        dropped = before - read_history(engine, table).refs.keys()
    if not dropped:
        return skipped(table, _STEP, "no branch is of a dead writer or past its time")
    return StepResult(table, _STEP, "done", "", {"dropped_branches": len(dropped)})
