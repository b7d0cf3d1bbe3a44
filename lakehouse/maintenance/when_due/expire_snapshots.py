"""Due conditions of snapshot expiry: snapshots older than the policy that nothing needs."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from lakehouse.iceberg.metadata.measured_health import SnapshotPin
from lakehouse.maintenance.upkeep_plan import Condition, Gain, PlannedStep, count_text
from lakehouse.maintenance.when_due.drop_branches import stale_branches
from lakehouse.maintenance.when_due.step_inputs import StepInputs, planned_step
from lakehouse.tables.upkeep import in_days

EXPIRY_EVERY = timedelta(days=1)
"""Minimum interval: a constantly written table would expire each snapshot separately."""


def plan_expiry(inputs: StepInputs) -> PlannedStep:
    """Plan the expiry of snapshots."""
    policy, health = inputs.policy, inputs.health
    cutoff = inputs.now - policy.keep_snapshots_for
    old = [at for at in health.snapshot_times[: -policy.keep_at_least] if at < cutoff]
    pins = _pins(inputs)
    first_needed = min((pin.committed_at for pin in pins if pin.needs_later), default=cutoff)
    older_than = min(cutoff, first_needed)
    pinned = _pinned_times(pins, health.snapshot_times, policy.keep_at_least)
    expirable = [at for at in old if at < older_than and at not in pinned]
    age = in_days(policy.keep_snapshots_for)
    conditions = [
        Condition(
            f"{count_text(len(expirable), 'snapshot is', 'snapshots are')} older than {age} and"
            f" needed by nothing; the newest {policy.keep_at_least} stay in any case",
            bool(expirable),
        )
    ]
    conditions += [Condition(text, False) for text in _pinned_by(pins, old)]
    rhythm = inputs.rhythm("expire_snapshots", EXPIRY_EVERY)
    if expirable and rhythm:
        conditions.append(Condition("snapshots expired within the last day", False))
    return planned_step(
        inputs,
        "expire_snapshots",
        conditions,
        is_due=bool(expirable) and rhythm is None,
        gain=Gain(fewer_snapshots=len(expirable)),
        not_before=rhythm if expirable else _oldest_until(inputs),
        parameters={
            "older_than": older_than.isoformat(),
            "keep": str(policy.keep_at_least),
        },
    )


def _pins(inputs: StepInputs) -> list[SnapshotPin]:
    """Return unique snapshot pins, without branches that are dropped first."""
    stale = stale_branches(inputs)
    pins = {}
    for ref in inputs.health.refs:
        if ref not in stale:
            owner = f"{'branch' if ref.is_branch else 'tag'} {ref.name}"
            pins[owner] = SnapshotPin(owner, ref.snapshot_id, ref.committed_at)
    going = {f"branch {ref.name}" for ref in stale}
    for pin in inputs.health.pins:
        if pin.owner not in going:
            pins.setdefault(pin.owner, pin)
    return list(pins.values())


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
        pinned_snapshots = [at for at in old if at == pin.committed_at]
        if pin.needs_later:
            pinned_snapshots = [at for at in old if at >= pin.committed_at]
        if pinned_snapshots:
            snapshots = count_text(
                len(pinned_snapshots), "older snapshot stays", "older snapshots stay"
            )
            yield (
                f"{snapshots}, for the {pin.owner} needs that of {pin.committed_at:%Y-%m-%d}"
                + (" and all since" if pin.needs_later else "")
            )


def _oldest_until(inputs: StepInputs) -> datetime | None:
    """Return when the oldest removable snapshot expires; None if all remain."""
    times = inputs.health.snapshot_times[: -inputs.policy.keep_at_least]
    expiry_times = (at + inputs.policy.keep_snapshots_for for at in times)
    return min((at for at in expiry_times if at > inputs.now), default=None)
