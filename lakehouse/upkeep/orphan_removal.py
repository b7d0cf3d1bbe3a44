"""When orphans are removed: files are old enough, and the table changed since the last listing."""

from datetime import datetime, timedelta
from functools import partial

from lakehouse.iceberg.upkeep.remove_orphans import remove_orphans
from lakehouse.iceberg.upkeep.step_result import StepName
from lakehouse.tables.upkeep import duration_text
from lakehouse.upkeep.upkeep_plan import PlannedStep, StepInputs

_STEP: StepName = "remove_orphans"
LISTING_EVERY = timedelta(days=7)
"""Orphans cost only storage, and finding them requires a listing of all files."""


def plan_orphans(inputs: StepInputs) -> PlannedStep:
    """Plan the removal of orphans."""
    last, not_before = inputs.last_evaluated(_STEP), _next_listing(inputs)
    age = duration_text(inputs.policy.orphans_after)
    reason, is_due = "files that no metadata names were not looked for yet", True
    if last is not None:
        when = f"{last.ended_at:%Y-%m-%d %H:%MZ}"
        reason = f"files can have lost their reference since the listing at {when}"
        if not_before is None:
            reason, is_due = f"nothing changed since the files were listed at {when}", False
    if not_before and inputs.now < not_before:
        listed = f"files were listed within {duration_text(LISTING_EVERY)}"
        reason, is_due = f"no file is {age} old, or {listed}", False
    older_than = inputs.now - inputs.policy.orphans_after
    work = partial(remove_orphans, table=inputs.health.table, older_than=older_than)
    return inputs.planned(_STEP, reason, work, is_due=is_due, not_before=not_before)


def _next_listing(inputs: StepInputs) -> datetime | None:
    """Return when files are old enough to be listed; None if nothing changed since."""
    health, orphans_after = inputs.health, inputs.policy.orphans_after
    last = inputs.last_evaluated(_STEP)
    if last is None:
        times = [record.ended_at for record in inputs.past.of_table(health.table)]
        return min([*health.snapshot_times, *times], default=inputs.now) + orphans_after
    changes = [*health.snapshot_times, *(ref.committed_at for ref in health.refs)]
    ripe_at = max(changes, default=inputs.now) + orphans_after
    if last.ended_at >= ripe_at:
        return None
    next_run = inputs.next_run(_STEP, LISTING_EVERY) or inputs.now
    is_unchanged = last.metadata_location == health.metadata_location
    return max(next_run, ripe_at) if is_unchanged else next_run
