"""Values of an upkeep plan: the state of a table, its steps with their reasons and gains."""

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.health_metrics import PartitionKey, TableHealth
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult
from lakehouse.tables.upkeep import UpkeepPolicy
from lakehouse.upkeep.upkeep_records import PastUpkeep, UpkeepRecord

Work = Callable[[Engine], StepResult]


@dataclass(frozen=True)
class PlannedStep:
    """An evaluated step of a table, due or not, with its reason and further notes."""

    table: str
    step: StepName
    is_due: bool
    reason: str
    """Example: `12 manifests of 1 MB for 3 data files (21 or more)`."""
    notes: tuple[str, ...] = ()
    work: Work | None = None
    """Executes the step; None if it is not due."""
    not_before: datetime | None = None
    """Earliest time of the next run, if it depends on time."""
    partitions: tuple[PartitionKey, ...] = ()
    """The partitions that make a compaction due."""
    fewer_files: int = 0
    """Reduction of the number of data and delete files."""
    fewer_snapshots: int = 0
    fewer_manifests: int = 0
    cost_bytes: int = 0
    """Bytes that it reads and writes."""


@dataclass(frozen=True)
class UpkeepPlan:
    """The evaluated steps of all tables in execution order, and the state that they are for."""

    steps: tuple[PlannedStep, ...]
    healths: Mapping[str, TableHealth] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    """Tables that could not be measured, with the reason."""

    @property
    def due(self) -> tuple[PlannedStep, ...]:
        """The steps to run now."""
        return tuple(step for step in self.steps if step.is_due)

    def next_check(self, table: str) -> datetime | None:
        """Return when a step of an unchanged table can become due; None without a time."""
        times = []
        for step in self.steps:
            if step.table == table and not step.is_due and step.not_before:
                times.append(step.not_before)
        return min(times, default=None)


@dataclass
class ByteBudget:
    """Remaining bytes that upkeep of all tables can read and write today."""

    left_bytes: int = sys.maxsize

    def take(self, cost_bytes: int) -> int:
        """Deduct the bytes of a step; return how many it gets."""
        taken_bytes = min(cost_bytes, self.left_bytes)
        self.left_bytes -= taken_bytes
        return taken_bytes


@dataclass(frozen=True)
class StepInputs:
    """State of a table for the due conditions of its steps.

    `named_by_user`: a user named this table; intervals and budget do not apply. `budget`:
    remaining bytes of the day, reduced by planning.
    """

    health: TableHealth
    policy: UpkeepPolicy
    past: PastUpkeep
    now: datetime
    named_by_user: bool
    budget: ByteBudget

    def last_evaluated(self, step: StepName) -> UpkeepRecord | None:
        """Return the newest record of a step that evaluated the table."""
        return self.past.last_evaluated(self.health.table, step)

    def next_run(self, step: StepName, every: timedelta) -> datetime | None:
        """Return when a step can run next if its interval has not elapsed; else None."""
        last = self.last_evaluated(step)
        if last is None or self.named_by_user or self.now >= last.ended_at + every:
            return None
        return last.ended_at + every

    def planned(
        self,
        step: StepName,
        reason: str,
        work: Work,
        *,
        is_due: bool,
        not_before: datetime | None = None,
        notes: Iterable[str] = (),
        **estimate: Any,
    ) -> PlannedStep:
        """Return a step.

        :param estimate: fields of a due step.
        """
        planned = PlannedStep(self.health.table, step, is_due, reason, tuple(notes))
        if is_due:
            return replace(planned, work=work, **estimate)
        return replace(planned, not_before=not_before)


def next_day(now: datetime) -> datetime:
    """Return the start of the next UTC day."""
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight + timedelta(days=1)


def count_text(number: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun: `1 small file`, `2 small files`."""
    return f"{number} {singular if number == 1 else plural or f'{singular}s'}"
