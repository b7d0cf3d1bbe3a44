"""What upkeep shall do to a table, and why, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lakehouse.iceberg.metadata.table_health import PartitionKey
from lakehouse.iceberg.upkeep.step_result import StepName


@dataclass(frozen=True)
class Condition:
    """One thing that decides about a step: what was found, what was expected, and whether that
    is met.
    """

    text: str
    """Such as `12 small files in 1 partition (2 or more)`."""
    is_met: bool


@dataclass(frozen=True)
class Gain:
    """What a step is expected to gain."""

    fewer_files: int = 0
    """Data and delete files that there will be less."""
    reads_a_day: float = 0.0
    """How often those files are read; so many are opened less."""
    freed_bytes: int = 0

    @property
    def saved_opens_a_day(self) -> float:
        """Files that need not be opened any more, a day."""
        return self.fewer_files * self.reads_a_day


@dataclass(frozen=True)
class PlannedStep:
    """A step that was looked at for a table: due, or not, and why.

    A step that is not due is in the plan too, with what is not met.
    """

    table: str
    step: StepName
    is_due: bool
    reason: str
    conditions: tuple[Condition, ...] = ()
    partitions: tuple[PartitionKey, ...] = ()
    """Where it is done; empty for the whole table."""
    gain: Gain = field(default_factory=Gain)
    cost_bytes: int = 0
    """Bytes that it reads and writes again."""
    not_before: datetime | None = None
    """When it may next run, where something is waited for."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """What the step is done with: `older_than`, `keep`, `target_bytes`, `refused_before`."""


@dataclass(frozen=True)
class UpkeepPlan:
    """The steps of all tables that were looked at, in the order in which they are to be done."""

    made_at: datetime
    steps: tuple[PlannedStep, ...]
    proposals: tuple[str, ...] = ()
    """What a writer should change instead, with the figures."""

    @property
    def due(self) -> tuple[PlannedStep, ...]:
        """The steps that are to be done now."""
        return tuple(step for step in self.steps if step.is_due)
