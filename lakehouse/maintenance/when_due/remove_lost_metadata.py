"""Due conditions for the removal of unreferenced metadata.json files."""

from lakehouse.iceberg.commit.branch import AUDIT_KEPT_FOR
from lakehouse.iceberg.upkeep.step_result import StepName
from lakehouse.maintenance.upkeep_plan import Condition, PlannedStep, count_text
from lakehouse.maintenance.when_due.step_inputs import StepInputs, planned_step

_STEP: StepName = "remove_lost_metadata"


def plan_lost_metadata(inputs: StepInputs) -> PlannedStep:
    """Plan the removal of unreferenced metadata.json files."""
    unreferenced, last = inputs.health.lost_metadata_files or (), inputs.last_evaluated(_STEP)
    count = count_text(len(unreferenced), "metadata.json file")
    conditions = [Condition(f"{count} that no log names (1 or more)", bool(unreferenced))]
    # Remaining files are younger than a day: a running commit can still reference them.
    rhythm = inputs.rhythm(_STEP, AUDIT_KEPT_FOR)
    if rhythm:
        conditions.append(Condition("they were looked at within the last day", False))
    elif unreferenced and last and inputs.named_by_user and inputs.is_unchanged_since(last):
        conditions.append(Condition("nothing changed since they were looked at", False))
    return planned_step(
        inputs,
        _STEP,
        conditions,
        not_before=rhythm if unreferenced else None,
        parameters={"older_than": (inputs.now - AUDIT_KEPT_FOR).isoformat()},
    )
