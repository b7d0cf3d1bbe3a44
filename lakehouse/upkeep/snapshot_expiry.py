"""When snapshots expire: those older than the policy that no reader, tag or branch needs."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial

from lakehouse.iceberg.metadata.health_metrics import SnapshotPin
from lakehouse.iceberg.upkeep.expire_snapshots import expire_snapshots
from lakehouse.iceberg.upkeep.step_result import StepName
from lakehouse.tables.upkeep import duration_text
from lakehouse.upkeep.stale_branches import stale_branches
from lakehouse.upkeep.upkeep_plan import PlannedStep, StepInputs, count_text

_STEP: StepName = "expire_snapshots"
EXPIRY_EVERY = timedelta(days=1)
"""Minimum interval: a constantly written table would expire each snapshot separately."""


def plan_expiry(inputs: StepInputs) -> PlannedStep:
    """Plan the expiry of snapshots, without those that a reader or ref needs."""
    policy, times = inputs.policy, inputs.health.snapshot_times
    cutoff = inputs.now - policy.keep_snapshots_for
    old = [at for at in times[: -policy.keep_at_least] if at < cutoff]
    pins = _pins(inputs)
    first_needed = min((pin.committed_at for pin in pins if pin.needs_later), default=cutoff)
    older_than = min(cutoff, first_needed)
    pinned = _pinned_times(pins, times, policy.keep_at_least)
    expirable = [at for at in old if at < older_than and at not in pinned]
    reason = (
        f"{count_text(len(expirable), 'snapshot is', 'snapshots are')} older than"
        f" {duration_text(policy.keep_snapshots_for)} and needed by nothing; the newest"
        f" {policy.keep_at_least} stay in any case"
    )
    not_before = inputs.next_run(_STEP, EXPIRY_EVERY)
    if expirable and not_before:
        reason = "snapshots expired within the last day"
    is_due = bool(expirable) and not_before is None
    if not expirable:
        ends = (at + policy.keep_snapshots_for for at in times[: -policy.keep_at_least])
        not_before = min((end for end in ends if end > inputs.now), default=None)
    return inputs.planned(
        _STEP,
        reason,
        partial(
            expire_snapshots,
            table=inputs.health.table,
            older_than=older_than,
            keep=policy.keep_at_least,
            pins=inputs.health.pins,
        ),
        is_due=is_due,
        not_before=not_before,
        notes=_pinned_by(pins, old),
        fewer_snapshots=len(expirable),
    )


def _pins(inputs: StepInputs) -> list[SnapshotPin]:
    """Return unique snapshot pins, without branches that are dropped first."""
    stale = {f"branch {ref.name}" for ref in stale_branches(inputs)}
    pins = {}
    for ref in inputs.health.refs:
        owner = f"{'branch' if ref.is_branch else 'tag'} {ref.name}"
        pins[owner] = SnapshotPin(owner, ref.snapshot_id, ref.committed_at)
    for pin in inputs.health.pins:
        pins.setdefault(pin.owner, pin)
    return [pin for owner, pin in pins.items() if owner not in stale]


def _pinned_times(
    pins: Sequence[SnapshotPin], times: Sequence[datetime], keep: int
) -> set[datetime]:
    """Return the snapshot times that refs keep: that of a tag, the newest `keep` of a branch.

    Ancestry is unknown here: snapshots of other branches can count for a branch. Expiry then
    finds nothing and waits for a change.
    """
    pinned = set()
    for pin in pins:
        if pin.owner.startswith("branch "):
            pinned.update([at for at in times if at <= pin.committed_at][-keep:])
        elif not pin.needs_later:
            pinned.add(pin.committed_at)
    return pinned


def _pinned_by(pins: Sequence[SnapshotPin], old: Sequence[datetime]) -> Iterator[str]:
    for pin in pins:
        if pin.needs_later:
            count = sum(at >= pin.committed_at for at in old)
        else:
            count = old.count(pin.committed_at)
        if count:
            snapshots = count_text(count, "older snapshot stays", "older snapshots stay")
            later = " and all since" if pin.needs_later else ""
            yield (
                f"{snapshots}, for the {pin.owner} needs that of"
                f" {pin.committed_at:%Y-%m-%d}{later}"
            )
