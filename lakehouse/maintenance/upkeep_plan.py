"""Values of an upkeep plan: steps, conditions and gains."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lakehouse.iceberg.metadata.measured_health import PartitionKey
from lakehouse.iceberg.upkeep.step_result import StepName

OPEN_BYTES = 4 * 1024 * 1024
"""Cost of opening a file in bytes; the default of Iceberg and Spark
(`read.split.open-file-cost`, `spark.sql.files.openCostInBytes`).
"""


@dataclass(frozen=True)
class Condition:
    """A condition of a step: actual and expected value, and whether it is met."""

    text: str
    """Example: `12 small files in 1 partition (2 or more)`."""
    is_met: bool


@dataclass(frozen=True)
class Gain:
    """Expected gain of a step."""

    fewer_files: int = 0
    """Reduction of the number of data and delete files."""
    skipped_files: int = 0
    """Files of an old partition spec, which reads of one partition can then skip."""
    deleted_bytes: int = 0
    """Bytes of deleted rows in data files, which reads then do not process."""
    reads_a_day: float = 0.0
    """How often these files are read per day."""
    fewer_snapshots: int = 0
    fewer_manifests: int = 0
    freed_bytes: int = 0

    @property
    def saved_opens_a_day(self) -> float:
        """File opens saved per day."""
        return (self.fewer_files + self.skipped_files) * self.reads_a_day

    @property
    def saved_bytes_a_day(self) -> float:
        """Bytes saved by reads per day, including file opens."""
        return self.saved_opens_a_day * OPEN_BYTES + self.deleted_bytes * self.reads_a_day


@dataclass(frozen=True)
class Estimate:
    """Estimate of a step before its correction by past results."""

    fewer_files: int = 0
    cost_bytes: int = 0


@dataclass(frozen=True)
class PlannedStep:
    """An evaluated step of a table, due or not, with its reason and conditions."""

    table: str
    step: StepName
    is_due: bool
    reason: str
    conditions: tuple[Condition, ...] = ()
    partitions: tuple[PartitionKey, ...] = ()
    """Partitions of the step; empty for the entire table."""
    gain: Gain = field(default_factory=Gain)
    cost_bytes: int = 0
    """Bytes that it reads and writes."""
    uncorrected: Estimate = field(default_factory=Estimate)
    not_before: datetime | None = None
    """Earliest time of the next run, if it depends on time."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Parameters as text: ISO timestamps `older_than` and `refused_before`; `keep`,
    `target_bytes`; `sort_by` (JSON array of columns) and `z_order`.
    """


@dataclass(frozen=True)
class UpkeepPlan:
    """The evaluated steps of all tables, in execution order."""

    made_at: datetime
    steps: tuple[PlannedStep, ...]
    proposals: tuple[str, ...] = ()
    """Recommended changes of writers, with statistics."""

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


def count_text(number: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun: `1 small file`, `2 small files`."""
    return f"{number} {singular if number == 1 else plural or f'{singular}s'}"
