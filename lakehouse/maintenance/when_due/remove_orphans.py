"""Due conditions of orphan removal: old enough, and changed since the last listing."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from lakehouse.iceberg.upkeep.step_result import StepName
from lakehouse.maintenance.upkeep_plan import Condition, PlannedStep
from lakehouse.maintenance.when_due.look import Look, planned_step
from lakehouse.tables.upkeep import in_days

_STEP: StepName = "remove_orphans"
LISTING_EVERY = timedelta(days=7)
"""Orphans cost only storage, and finding them requires a listing of all files."""


def plan_orphans(look: Look) -> PlannedStep:
    """Plan the removal of orphans."""
    return planned_step(
        look,
        _STEP,
        list(_conditions(look)),
        not_before=_next_listing(look),
        parameters={"older_than": (look.now - look.policy.orphans_after).isoformat()},
    )


def _conditions(look: Look) -> Iterator[Condition]:
    """Yield the conditions for a file listing."""
    last = look.last_look(_STEP)
    if last is None:
        yield Condition("files that no metadata names were not looked for yet", True)
        if look.now < _first_ripe_at(look):
            age = in_days(look.policy.orphans_after)
            yield Condition(f"the table, so each of its files, is younger than {age}", False)
        return
    when = f"{last.ended_at:%Y-%m-%d %H:%M}"
    if look.is_unchanged_since(last):
        # One more listing finds files that were too young at the last one.
        was_final = last.ended_at >= _ripe_at(look)
        is_ripe = not was_final and look.now >= _ripe_at(look)
        yield Condition(f"nothing changed since the files were listed at {when}", is_ripe)
    else:
        yield Condition(f"the table changed since its files were listed at {when}", True)
    rhythm = look.rhythm(_STEP, LISTING_EVERY)
    if rhythm:
        yield Condition(f"files were listed within the last {in_days(LISTING_EVERY)}", False)


def _first_ripe_at(look: Look) -> datetime:
    """Return when the oldest file can be old enough, from snapshots or upkeep records."""
    known = [*look.health.snapshot_times, *look.past.times_of(look.health.table)]
    return min(known, default=look.now) + look.policy.orphans_after


def _ripe_at(look: Look) -> datetime:
    """Return when all orphans of the last change are old enough."""
    changes = [*look.health.snapshot_times, *(ref.committed_at for ref in look.health.refs)]
    return max(changes, default=look.now) + look.policy.orphans_after


def _next_listing(look: Look) -> datetime | None:
    last = look.last_look(_STEP)
    if last is None:
        return _first_ripe_at(look)
    rhythm = look.rhythm(_STEP, LISTING_EVERY)
    if not look.is_unchanged_since(last):
        return rhythm
    if last.ended_at >= _ripe_at(look):
        return None
    return max(rhythm or look.now, _ripe_at(look))
