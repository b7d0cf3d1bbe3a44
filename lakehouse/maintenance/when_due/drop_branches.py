"""When stale branches are dropped: those of writers that died, and those of refused writes that
people had time to look at.
"""

from collections.abc import Sequence
from datetime import datetime

from lakehouse.iceberg.commit.branch import AUDIT_KEPT_FOR, begun_at, is_refused
from lakehouse.iceberg.metadata.measured_health import RefHealth
from lakehouse.maintenance.upkeep_plan import Condition, PlannedStep, counted
from lakehouse.maintenance.when_due.look import Look, planned_step
from lakehouse.tables.upkeep import UpkeepPolicy, in_days


def plan_branches(look: Look) -> PlannedStep:
    """Plan the removal of stale branches."""
    stale = [ref.name for ref in stale_branches(look)]
    names = f": {_some(stale)}" if stale else ""
    kept = in_days(look.policy.refused_for)
    has_stale = Condition(
        f"{counted(len(stale), 'stale branch', 'stale branches')}{names} (refused ones of more"
        f" than {kept}, and those of dead writers)",
        bool(stale),
    )
    return planned_step(
        look,
        "drop_branches",
        [has_stale],
        not_before=_refused_until(look),
        parameters={"refused_before": (look.now - look.policy.refused_for).isoformat()},
    )


def stale_branches(look: Look) -> list[RefHealth]:
    """Return the branches of refused writes that were kept for long enough, and those of dead
    writers.
    """
    return [
        ref
        for ref in look.health.refs
        if ref.is_branch and _is_stale(ref, look.policy, look.now)
    ]


def _is_stale(ref: RefHealth, policy: UpkeepPolicy, now: datetime) -> bool:
    begun = begun_at(ref.name)
    kept_for = policy.refused_for if is_refused(ref.name) else AUDIT_KEPT_FOR
    return begun is not None and begun < now - kept_for


def _refused_until(look: Look) -> datetime | None:
    """Return when the next branch of a refused or dead write has been kept for long enough."""
    moments = []
    for ref in look.health.refs:
        begun = begun_at(ref.name)
        if begun:
            is_kept = is_refused(ref.name)
            moments.append(begun + (look.policy.refused_for if is_kept else AUDIT_KEPT_FOR))
    return min((at for at in moments if at > look.now), default=None)


def _some(names: Sequence[str]) -> str:
    """Return up to three names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
