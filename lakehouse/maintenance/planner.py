"""Plans upkeep from health, policies, reads and past upkeep; pure functions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lakehouse.iceberg.metadata.iceberg_release import PINNED, IcebergRelease
from lakehouse.iceberg.metadata.measured_health import TableHealth
from lakehouse.iceberg.upkeep.step_result import StepName
from lakehouse.maintenance.compaction_budget import Choice, choose, planned_compaction, value_of
from lakehouse.maintenance.daily_bytes import DailyBytes, size_text
from lakehouse.maintenance.past_upkeep import PastUpkeep
from lakehouse.maintenance.table_reads import TableReads
from lakehouse.maintenance.upkeep_plan import Condition, PlannedStep, UpkeepPlan
from lakehouse.maintenance.upkeep_record import CompactedPartition
from lakehouse.maintenance.when_due.compact import Candidate, candidates
from lakehouse.maintenance.when_due.compute_statistics import plan_statistics
from lakehouse.maintenance.when_due.drop_branches import plan_branches
from lakehouse.maintenance.when_due.expire_snapshots import plan_expiry
from lakehouse.maintenance.when_due.remove_lost_metadata import plan_lost_metadata
from lakehouse.maintenance.when_due.remove_orphans import plan_orphans
from lakehouse.maintenance.when_due.rewrite_manifests import plan_manifests
from lakehouse.maintenance.when_due.step_inputs import StepInputs
from lakehouse.tables.upkeep import DEFAULTS, UpkeepPolicy

BYTES_A_DAY = 100_000_000_000
"""Default daily budget for all tables: about an hour of a small machine."""
OF_GLUE: tuple[StepName, ...] = ("compact", "expire_snapshots", "remove_orphans")
"""Steps of Glue's table optimizers."""
SAME_LOOK_EVERY = timedelta(days=1)
"""Interval after which an unchanged table is evaluated again: time can make a step due."""


@dataclass(frozen=True)
class Known:
    """Planner inputs other than table health; a table without a policy uses the defaults."""

    policies: Mapping[str, UpkeepPolicy] = field(default_factory=dict)
    reads: TableReads = field(default_factory=TableReads)
    past: PastUpkeep = field(default_factory=PastUpkeep)
    bytes_a_day: int = BYTES_A_DAY
    iceberg: IcebergRelease = PINNED

    def policy(self, table: str) -> UpkeepPolicy:
        """Return the policy of a table."""
        return self.policies.get(table, DEFAULTS)


def plan_upkeep(
    healths: Sequence[TableHealth],
    known: Known,
    now: datetime,
    *,
    named_by_user: bool = False,
) -> UpkeepPlan:
    """Plan the upkeep of tables, most valuable compactions first.

    :param named_by_user: a user named these tables: ignores recent writes, read frequency,
        budget, intervals and delays after failures.
    """
    budget = DailyBytes(known.bytes_a_day, known.past.spent_bytes(now))
    choice = _choose(healths, known, now, budget, named_by_user)
    steps: list[PlannedStep] = []
    proposed: list[str] = []
    in_order = sorted(healths, key=lambda health: health.table)
    in_order.sort(key=lambda health: value_of(health.table, choice), reverse=True)
    for health in in_order:
        for step in _steps(health, known, now, choice, budget, named_by_user):
            blocked = _blocked_step(health, step.step, known, now, named_by_user)
            steps.append(blocked or step)
        proposed += proposals(health, known.past, now)
    return UpkeepPlan(now, tuple(steps), tuple(proposed))


def plan_compactions(
    healths: Sequence[TableHealth], known: Known, now: datetime
) -> dict[str, PlannedStep]:
    """Return the compaction step of each table as in `plan_upkeep` without named tables."""
    budget = DailyBytes(known.bytes_a_day, known.past.spent_bytes(now))
    choice = _choose(healths, known, now, budget, named_by_user=False)
    steps = {}
    for health in healths:
        blocked = _blocked_step(health, "compact", known, now, named_by_user=False)
        policy = known.policy(health.table)
        steps[health.table] = blocked or planned_compaction(
            health, choice, policy, now, known.bytes_a_day
        )
    return steps


def _choose(
    healths: Sequence[TableHealth],
    known: Known,
    now: datetime,
    budget: DailyBytes,
    named_by_user: bool,
) -> Choice:
    gaining: list[Candidate] = []
    for health in healths:
        if _blocked_step(health, "compact", known, now, named_by_user) is None:
            gaining += candidates(
                health, known.reads, known.past, now, named_by_user=named_by_user
            )
    return choose(gaining, budget, named_by_user=named_by_user)


def _steps(
    health: TableHealth,
    known: Known,
    now: datetime,
    choice: Choice,
    budget: DailyBytes,
    named_by_user: bool,
) -> Iterator[PlannedStep]:
    policy = known.policy(health.table)
    compaction = planned_compaction(health, choice, policy, now, known.bytes_a_day)
    yield compaction
    inputs = StepInputs(
        health=health,
        policy=policy,
        past=known.past,
        now=now,
        reads_a_day=known.reads.of_table(health.table),
        named_by_user=named_by_user,
        compacts=compaction.is_due,
        budget=budget,
    )
    # The only safe order, see `StepName`.
    yield plan_branches(inputs)
    yield plan_expiry(inputs)
    yield plan_manifests(inputs)
    yield plan_orphans(inputs)
    yield plan_lost_metadata(inputs)
    yield plan_statistics(inputs)


def _blocked_step(
    health: TableHealth, step: StepName, known: Known, now: datetime, named_by_user: bool
) -> PlannedStep | None:
    """Return a step that is not due if the table is not evaluated for it; else None."""
    kept_by = known.policy(health.table).kept_by
    if kept_by == "nobody":
        return _not_due(health, step, "its declaration leaves it alone (kept_by='nobody')")
    if kept_by == "glue" and step in OF_GLUE:
        return _not_due(health, step, "Glue's table optimizers do it (kept_by='glue')")
    if health.snapshot_id is None:
        return _not_due(health, step, "the table has no snapshot")
    lacking = known.iceberg.lacks(step)
    if lacking:
        return _not_due(health, step, lacking)
    last = known.past.last_evaluated(health.table, step)
    if last and last.found_nothing_in(health) and now < last.ended_at + SAME_LOOK_EVERY:
        why = f"nothing changed since it found nothing to do: {last.reason}"
        return _not_due(health, step, why, last.ended_at + SAME_LOOK_EVERY)
    pause = known.past.pause_until(health.table, step)
    if pause and now < pause and not named_by_user:
        return _not_due(
            health, step, "it was tried in vain, and waits before it is again", pause
        )
    return None


def _not_due(
    health: TableHealth, step: StepName, why: str, until: datetime | None = None
) -> PlannedStep:
    return PlannedStep(
        health.table, step, False, why, (Condition(why, False),), not_before=until
    )


MANY_COMPACTIONS = 3
SHORT_ORDER = timedelta(days=3)
"""Limit: compactions of a partition within this time."""


def proposals(health: TableHealth, past: PastUpkeep, now: datetime) -> Iterator[str]:
    """Yield a recommendation if partitions are compacted too often, with the worst one."""
    compacted = past.compactions_since(health.table, now - SHORT_ORDER)
    too_often = {}
    for partition, times in compacted.items():
        if len(times) >= MANY_COMPACTIONS:
            too_often[partition] = times
    if too_often:
        worst = max(too_often, key=lambda partition: len(too_often[partition]))
        yield _proposal(health, worst, too_often[worst], other_count=len(too_often) - 1)


def _proposal(
    health: TableHealth, partition: str, times: Sequence[CompactedPartition], other_count: int
) -> str:
    note = f" (and {other_count} more like it)" if other_count else ""
    files = sum(before.small_files for before in times)
    size = sum(before.small_bytes for before in times)
    mean = size_text(size // files) if files else "no bytes"
    return (
        f"{health.table}: {partition.partition(': ')[2]} was compacted {len(times)} times within"
        f" {SHORT_ORDER.days} days{note}, of {files} small files with {mean} on average, where"
        f" {size_text(health.target_bytes)} is aimed at. Let its writer make fewer: commit less"
        " often with more rows; gather the rows of a partition in one task"
        " (properties={'write.distribution-mode': 'hash'}); or, where so few rows are all"
        " there are, partition by less, or lower target_file_mb."
    )
