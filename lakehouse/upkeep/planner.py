"""Plans the upkeep of tables from health, policies and past upkeep; pure functions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lakehouse.iceberg.catalog.iceberg_release import PINNED, IcebergRelease
from lakehouse.iceberg.metadata.health_metrics import TableHealth
from lakehouse.iceberg.upkeep.step_result import StepName
from lakehouse.tables.upkeep import DEFAULTS, UpkeepPolicy
from lakehouse.upkeep.compaction import plan_compaction, saved_files_per_byte
from lakehouse.upkeep.manifest_rewrite import plan_manifests
from lakehouse.upkeep.orphan_removal import plan_orphans
from lakehouse.upkeep.snapshot_expiry import plan_expiry
from lakehouse.upkeep.stale_branches import plan_branches
from lakehouse.upkeep.upkeep_plan import (
    ByteBudget,
    PlannedStep,
    StepInputs,
    UpkeepPlan,
)
from lakehouse.upkeep.upkeep_records import PastUpkeep

BYTES_A_DAY = 100_000_000_000
"""Default daily budget for all tables: about an hour of a small machine."""
STEPS_OF_GLUE: tuple[StepName, ...] = ("compact", "expire_snapshots", "remove_orphans")
"""Steps of Glue's table optimizers."""
NOTHING_FOUND_PAUSE = timedelta(days=1)
"""Delay after a step that found nothing to do."""
_PLAN_STEP: Mapping[StepName, Callable[[StepInputs], PlannedStep]] = {
    "compact": plan_compaction,
    "drop_branches": plan_branches,
    "expire_snapshots": plan_expiry,
    "rewrite_manifests": plan_manifests,
    "remove_orphans": plan_orphans,
}
"""The steps in the only safe order, see `StepName`."""


@dataclass(frozen=True)
class Known:
    """Planner inputs other than table health; a table without a policy uses the defaults."""

    policies: Mapping[str, UpkeepPolicy] = field(default_factory=dict)
    past: PastUpkeep = field(default_factory=PastUpkeep)
    bytes_a_day: int = BYTES_A_DAY
    iceberg: IcebergRelease = PINNED


def plan_upkeep(
    healths: Sequence[TableHealth], known: Known, now: datetime, *, named_by_user: bool = False
) -> UpkeepPlan:
    """Plan the upkeep of tables, most valuable compactions first.

    :param named_by_user: a user named these tables: ignores recent writes, budget, intervals
        and delays after failures.
    """
    budget = ByteBudget()
    if not named_by_user:
        budget = ByteBudget(max(0, known.bytes_a_day - known.past.spent_bytes(now)))
    tables = []
    for health in sorted(healths, key=lambda health: health.table):
        policy = known.policies.get(health.table, DEFAULTS)
        tables.append(StepInputs(health, policy, known.past, now, named_by_user, budget))
    tables.sort(key=saved_files_per_byte, reverse=True)
    steps = []
    for table in tables:
        for step, plan_step in _PLAN_STEP.items():
            steps.append(_blocked_step(table, step, known.iceberg) or plan_step(table))
    return UpkeepPlan(tuple(steps), {health.table: health for health in healths})


def _blocked_step(
    inputs: StepInputs, step: StepName, iceberg: IcebergRelease
) -> PlannedStep | None:
    """Return a step that is not due if the table is not evaluated for it; else None."""
    health, kept_by = inputs.health, inputs.policy.kept_by
    if kept_by == "nobody":
        return _not_due(health, step, "its declaration leaves it alone (kept_by='nobody')")
    if kept_by == "glue" and step in STEPS_OF_GLUE:
        return _not_due(health, step, "Glue's table optimizers do it (kept_by='glue')")
    if health.snapshot_id is None:
        return _not_due(health, step, "the table has no snapshot")
    lacking = iceberg.lacks_prefix_listing()
    if step == "remove_orphans" and lacking:
        return _not_due(health, step, lacking)
    last = inputs.last_evaluated(step)
    if last and not last.is_done and inputs.now < last.ended_at + NOTHING_FOUND_PAUSE:
        is_unchanged = last.metadata_location == health.metadata_location
        if is_unchanged or not inputs.named_by_user:
            why = f"it found nothing to do within the last day: {last.reason}"
            return _not_due(health, step, why, last.ended_at + NOTHING_FOUND_PAUSE)
    pause = inputs.past.pause_until(health.table, step)
    if pause and inputs.now < pause and not inputs.named_by_user:
        return _not_due(health, step, "it failed before, and waits until it is retried", pause)
    return None


def _not_due(
    health: TableHealth, step: StepName, why: str, until: datetime | None = None
) -> PlannedStep:
    return PlannedStep(health.table, step, False, why, not_before=until)
