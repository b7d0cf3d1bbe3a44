"""Chooses the partitions to compact today, most valuable first, within the daily byte budget."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from lakehouse.iceberg.metadata.measured_health import TableHealth
from lakehouse.maintenance.daily_bytes import DailyBytes, next_day, size_text
from lakehouse.maintenance.upkeep_plan import Condition, Estimate, Gain, PlannedStep, count_text
from lakehouse.maintenance.when_due.compact import (
    LEAST_FILES,
    LEAST_FILES_AT_REST,
    PAID_BACK_IN_DAYS,
    Candidate,
)
from lakehouse.tables.upkeep import UpkeepPolicy


@dataclass(frozen=True)
class Choice:
    """The chosen candidates of all tables, and those that wait, by reason."""

    chosen: tuple[Candidate, ...]
    over_budget: tuple[Candidate, ...] = ()
    hot: tuple[Candidate, ...] = ()
    unpaid: tuple[Candidate, ...] = ()
    in_vain: tuple[Candidate, ...] = ()


def choose(
    candidates: Iterable[Candidate], budget: DailyBytes, *, named_by_user: bool = False
) -> Choice:
    """Choose the partitions to compact now and deduct their cost from the budget.

    :param named_by_user: a user named these tables: only ineffective compactions wait.
    """
    chosen, over_budget, hot, unpaid, in_vain = [], [], [], [], []
    for candidate in sorted(candidates, key=_most_valuable_first):
        if candidate.is_in_vain:
            in_vain.append(candidate)
        elif named_by_user:
            chosen.append(candidate)
        elif candidate.hot_until:
            hot.append(candidate)
        elif not candidate.is_paid_back:
            unpaid.append(candidate)
        elif budget.take(candidate.cost_bytes):
            chosen.append(candidate)
        else:
            over_budget.append(candidate)
    return Choice(*map(tuple, (chosen, over_budget, hot, unpaid, in_vain)))


def _most_valuable_first(candidate: Candidate) -> tuple[float, str, str]:
    return -candidate.value, candidate.table, str(candidate.partition.key)


def planned_compaction(
    health: TableHealth, choice: Choice, policy: UpkeepPolicy, now: datetime, bytes_a_day: int
) -> PlannedStep:
    """Return the compaction of one table: due if any of its partitions was chosen."""
    chosen = _of(choice.chosen, health.table)
    conditions = list(_conditions(health, choice, chosen, bytes_a_day))
    unmet = [condition.text for condition in conditions if not condition.is_met]
    fewer_files = sum(candidate.gain.fewer_files for candidate in chosen)
    return PlannedStep(
        table=health.table,
        step="compact",
        is_due=bool(chosen),
        reason=_reason(chosen) if chosen else unmet[0],
        conditions=tuple(conditions),
        partitions=tuple(candidate.partition.key for candidate in chosen),
        gain=Gain(
            fewer_files=fewer_files,
            skipped_files=sum(candidate.gain.skipped_files for candidate in chosen),
            deleted_bytes=sum(candidate.gain.deleted_bytes for candidate in chosen),
            reads_a_day=_mean_reads(chosen),
        ),
        cost_bytes=sum(candidate.cost_bytes for candidate in chosen),
        uncorrected=Estimate(
            sum(candidate.need.estimate.fewer_files for candidate in chosen),
            sum(candidate.need.estimate.cost_bytes for candidate in chosen),
        ),
        not_before=None if chosen else _not_before(health, choice, now),
        parameters=_parameters(health, policy),
    )


def value_of(table: str, choice: Choice) -> float:
    """Return the maximum value of the chosen partitions of a table; 0 without any."""
    return max((candidate.value for candidate in _of(choice.chosen, table)), default=0.0)


def _of(candidates: Iterable[Candidate], table: str) -> list[Candidate]:
    return [candidate for candidate in candidates if candidate.table == table]


def _conditions(
    health: TableHealth, choice: Choice, chosen: Sequence[Candidate], bytes_a_day: int
) -> Iterable[Condition]:
    waiting = [
        (choice.hot, "written to within the last hour"),
        (
            choice.unpaid,
            f"read too seldom for a rewrite to pay for itself in {PAID_BACK_IN_DAYS} days",
        ),
        (choice.over_budget, f"more than is left of today's {size_text(bytes_a_day)}"),
        (choice.in_vain, "rewritten before without effect, and the files are the same"),
    ]
    if chosen:
        yield Condition(f"{count_text(len(chosen), 'partition')} gain by it (1 or more)", True)
    for candidates, why in waiting:
        blocked = _of(candidates, health.table)
        if blocked:
            yield Condition(
                f"{count_text(len(blocked), 'partition')} {_needs(blocked)}: {why}", False
            )
    is_well = not any(_of(candidates, health.table) for candidates, _ in waiting)
    if is_well and not chosen:
        yield Condition(_nothing_gains(health), False)


def _nothing_gains(health: TableHealth) -> str:
    if not health.fewer_files and not health.delete_files:
        return "no partition gains by it (1 or more)"
    return (
        f"no partition has {LEAST_FILES} small or delete files, or {LEAST_FILES_AT_REST} and"
        " was not written to for a day"
    )


def _reason(chosen: Sequence[Candidate]) -> str:
    return f"{count_text(len(chosen), 'partition')} {_needs(chosen)}"


def _needs(candidates: Sequence[Candidate]) -> str:
    """Return the reasons of one partition, or the sums of many."""
    if len(candidates) == 1:
        return f"with {' and '.join(candidates[0].need.reasons)}"
    files = sum(candidate.need.files for candidate in candidates)
    old = sum(candidate.gain.skipped_files for candidate in candidates)
    parts = [count_text(files, "small or delete file")] if files else []
    if old:
        parts.append(f"{count_text(old, 'file')} of an old partition spec")
    return f"with {' and '.join(parts)}"


def _mean_reads(chosen: Sequence[Candidate]) -> float:
    """Return the mean reads per day, weighted by saved files."""
    files = sum(
        candidate.gain.fewer_files + candidate.gain.skipped_files for candidate in chosen
    )
    opens = sum(candidate.gain.saved_opens_a_day for candidate in chosen)
    return opens / files if files else 0.0


def _not_before(health: TableHealth, choice: Choice, now: datetime) -> datetime | None:
    times = [
        candidate.hot_until
        for candidate in _of(choice.hot, health.table)
        if candidate.hot_until
    ]
    if _of(choice.over_budget, health.table):
        times.append(next_day(now))
    return min(times, default=None)


def _parameters(health: TableHealth, policy: UpkeepPolicy) -> dict[str, str]:
    parameters = {"target_bytes": str(health.target_bytes)}
    if policy.sort_by:
        # A name can contain a comma.
        parameters["sort_by"] = json.dumps(policy.sort_by)
        parameters["z_order"] = str(policy.z_order).lower()
    return parameters
