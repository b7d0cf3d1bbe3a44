"""When metadata.json files of failed commits, which no log names, are removed."""

from functools import partial

from lakehouse.iceberg.commit.branch import AUDIT_KEPT_FOR
from lakehouse.iceberg.upkeep.remove_lost_metadata import remove_lost_metadata
from lakehouse.iceberg.upkeep.step_result import StepName
from lakehouse.upkeep.upkeep_plan import Condition, PlannedStep, StepInputs, count_text

_STEP: StepName = "remove_lost_metadata"


def plan_lost_metadata(inputs: StepInputs) -> PlannedStep:
    """Plan the removal of unreferenced metadata.json files: at most once a day.

    A running commit has written its file but not yet referenced it, so that only files older
    than a day are removed.
    """
    unreferenced = inputs.health.lost_metadata_files or ()
    count = count_text(len(unreferenced), "metadata.json file")
    conditions = [Condition(f"{count} that no log names (1 or more)", bool(unreferenced))]
    next_run = inputs.next_run(_STEP, AUDIT_KEPT_FOR) if unreferenced else None
    if next_run:
        conditions.append(Condition("they were checked within the last day", False))
    older_than = inputs.now - AUDIT_KEPT_FOR
    work = partial(remove_lost_metadata, table=inputs.health.table, older_than=older_than)
    return inputs.planned(_STEP, conditions, work, not_before=next_run)
