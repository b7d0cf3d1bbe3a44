"""Due conditions of orphan removal: old enough, and changed since the last listing."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from lakehouse.iceberg.upkeep.step_result import StepName
from lakehouse.maintenance.upkeep_plan import Condition, PlannedStep
from lakehouse.maintenance.when_due.step_inputs import StepInputs, planned_step
from lakehouse.tables.upkeep import in_days

_STEP: StepName = "remove_orphans"
LISTING_EVERY = timedelta(days=7)
"""Orphans cost only storage, and finding them requires a listing of all files."""


def plan_orphans(inputs: StepInputs) -> PlannedStep:
    """Plan the removal of orphans."""
    return planned_step(
        inputs,
        _STEP,
        list(_conditions(inputs)),
        not_before=_next_listing(inputs),
        parameters={"older_than": (inputs.now - inputs.policy.orphans_after).isoformat()},
    )


def _conditions(inputs: StepInputs) -> Iterator[Condition]:
    """Yield the conditions for a file listing."""
    last = inputs.last_evaluated(_STEP)
    if last is None:
        yield Condition("files that no metadata names were not looked for yet", True)
        if inputs.now < _first_ripe_at(inputs):
            age = in_days(inputs.policy.orphans_after)
            yield Condition(f"the table, so each of its files, is younger than {age}", False)
        return
    when = f"{last.ended_at:%Y-%m-%d %H:%M}"
    if inputs.is_unchanged_since(last):
        # One more listing finds files that were too young at the last one.
        was_final = last.ended_at >= _ripe_at(inputs)
        is_ripe = not was_final and inputs.now >= _ripe_at(inputs)
        yield Condition(f"nothing changed since the files were listed at {when}", is_ripe)
    else:
        yield Condition(f"the table changed since its files were listed at {when}", True)
    rhythm = inputs.rhythm(_STEP, LISTING_EVERY)
    if rhythm:
        yield Condition(f"files were listed within the last {in_days(LISTING_EVERY)}", False)


def _first_ripe_at(inputs: StepInputs) -> datetime:
    """Return when the oldest file can be old enough, from snapshots or upkeep records."""
    known = [*inputs.health.snapshot_times, *inputs.past.times_of(inputs.health.table)]
    return min(known, default=inputs.now) + inputs.policy.orphans_after


def _ripe_at(inputs: StepInputs) -> datetime:
    """Return when all orphans of the last change are old enough."""
    changes = [*inputs.health.snapshot_times, *(ref.committed_at for ref in inputs.health.refs)]
    return max(changes, default=inputs.now) + inputs.policy.orphans_after


def _next_listing(inputs: StepInputs) -> datetime | None:
    last = inputs.last_evaluated(_STEP)
    if last is None:
        return _first_ripe_at(inputs)
    rhythm = inputs.rhythm(_STEP, LISTING_EVERY)
    if not inputs.is_unchanged_since(last):
        return rhythm
    if last.ended_at >= _ripe_at(inputs):
        return None
    return max(rhythm or inputs.now, _ripe_at(inputs))
