"""Due conditions for the removal of unreferenced metadata.json files."""

from lakehouse.iceberg.commit.branch import AUDIT_KEPT_FOR
from lakehouse.iceberg.upkeep.step_result import StepName
from lakehouse.maintenance.upkeep_plan import Condition, PlannedStep, counted
from lakehouse.maintenance.when_due.look import Look, planned_step

_STEP: StepName = "remove_lost_metadata"


def plan_lost_metadata(look: Look) -> PlannedStep:
    """Plan the removal of unreferenced metadata.json files."""
    unreferenced, last = look.health.lost_metadata_files or (), look.last_look(_STEP)
    count = counted(len(unreferenced), "metadata.json file")
    conditions = [Condition(f"{count} that no log names (1 or more)", bool(unreferenced))]
    # Remaining files are younger than a day: a running commit can still reference them.
    rhythm = look.rhythm(_STEP, AUDIT_KEPT_FOR)
    if rhythm:
        conditions.append(Condition("they were looked at within the last day", False))
    elif unreferenced and last and look.asked_by_name and look.is_unchanged_since(last):
        conditions.append(Condition("nothing changed since they were looked at", False))
    return planned_step(
        look,
        _STEP,
        conditions,
        not_before=rhythm if unreferenced else None,
        parameters={"older_than": (look.now - AUDIT_KEPT_FOR).isoformat()},
    )
