"""Due conditions of branch removal: branches of crashed writers, and expired blocked writes."""

from collections.abc import Sequence
from datetime import datetime

from lakehouse.iceberg.commit.branch import kept_until
from lakehouse.iceberg.metadata.measured_health import RefHealth
from lakehouse.maintenance.upkeep_plan import Condition, PlannedStep, count_text
from lakehouse.maintenance.when_due.step_inputs import StepInputs, planned_step
from lakehouse.tables.upkeep import in_days


def plan_branches(inputs: StepInputs) -> PlannedStep:
    """Plan the removal of stale branches."""
    stale = [ref.name for ref in stale_branches(inputs)]
    names = f": {_some(stale)}" if stale else ""
    kept = in_days(inputs.policy.refused_for)
    has_stale = Condition(
        f"{count_text(len(stale), 'stale branch', 'stale branches')}{names} (refused ones of more"
        f" than {kept}, and those of dead writers)",
        bool(stale),
    )
    return planned_step(
        inputs,
        "drop_branches",
        [has_stale],
        not_before=_refused_until(inputs),
        parameters={"refused_before": (inputs.now - inputs.policy.refused_for).isoformat()},
    )


def stale_branches(inputs: StepInputs) -> list[RefHealth]:
    """Return the expired branches of blocked writes and of crashed writers."""
    stale = []
    for ref in inputs.health.refs:
        until = kept_until(ref.name, inputs.policy.refused_for)
        if ref.is_branch and until and until < inputs.now:
            stale.append(ref)
    return stale


def _refused_until(inputs: StepInputs) -> datetime | None:
    """Return when the next branch of a blocked write or crashed writer expires."""
    expiry_times = (
        kept_until(ref.name, inputs.policy.refused_for) for ref in inputs.health.refs
    )
    return min((at for at in expiry_times if at and at > inputs.now), default=None)


def _some(names: Sequence[str]) -> str:
    """Return up to three names and the number of the remaining ones."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
