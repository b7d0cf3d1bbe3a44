"""What upkeep shall do to a table, and why, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lakehouse.iceberg.metadata.measured_health import PartitionKey
from lakehouse.iceberg.upkeep.step_result import StepName

OPEN_BYTES = 4 * 1024 * 1024
"""What opening a file costs, as bytes that could be read instead; the value that Iceberg and
Spark plan reads by (`read.split.open-file-cost`, `spark.sql.files.openCostInBytes`).
"""


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
    skipped_files: int = 0
    """Files of an old partition spec, which a read of one partition then leaves out."""
    deleted_bytes: int = 0
    """Bytes of deleted rows in data files, which a read then does not pass over."""
    reads_a_day: float = 0.0
    """How often those files are read; so many are opened less."""
    fewer_snapshots: int = 0
    fewer_manifests: int = 0
    freed_bytes: int = 0

    @property
    def saved_opens_a_day(self) -> float:
        """Files that need not be opened any more, a day."""
        return (self.fewer_files + self.skipped_files) * self.reads_a_day

    @property
    def saved_bytes_a_day(self) -> float:
        """What reads save a day, opened files counted as the bytes that they cost."""
        return self.saved_opens_a_day * OPEN_BYTES + self.deleted_bytes * self.reads_a_day


@dataclass(frozen=True)
class Estimate:
    """What a step was expected to come to before that was corrected by what earlier ones came
    to.
    """

    fewer_files: int = 0
    cost_bytes: int = 0


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
    uncorrected: Estimate = field(default_factory=Estimate)
    not_before: datetime | None = None
    """When it may next run, where something is waited for."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """What the step is done with, as text: moments in ISO form `older_than`, `refused_before`;
    `keep`, `target_bytes`; `sort_by`, columns as an array in JSON, and `z_order`.
    """


@dataclass(frozen=True)
class UpkeepPlan:
    """The steps of all tables that were looked at, in the order in which they are to be
    done.
    """

    made_at: datetime
    steps: tuple[PlannedStep, ...]
    proposals: tuple[str, ...] = ()
    """What a writer should change instead, with the figures."""

    @property
    def due(self) -> tuple[PlannedStep, ...]:
        """The steps that are to be done now."""
        return tuple(step for step in self.steps if step.is_due)

    def next_look(self, table: str) -> datetime | None:
        """Return when a step of a table may become due although nothing changes; None where
        nothing is waited for.
        """
        moments = []
        for step in self.steps:
            if step.table == table and not step.is_due and step.not_before:
                moments.append(step.not_before)
        return min(moments, default=None)


def counted(number: int, singular: str, plural: str = "") -> str:
    """Return a number of things in words: `1 small file`, `2 small files`."""
    return f"{number} {singular if number == 1 else plural or f'{singular}s'}"
