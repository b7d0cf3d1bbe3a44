"""What came of one step of upkeep, beside what was promised of it: kept, shown, and what the
next estimates are corrected by.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Self

from lakehouse.iceberg.metadata.measured_health import PartitionKey, TableHealth
from lakehouse.iceberg.upkeep.step_result import StepName, StepOutcome, StepResult
from lakehouse.maintenance.upkeep_plan import Estimate, PlannedStep


@dataclass(frozen=True)
class CompactedPartition:
    """A partition as it was before it was compacted."""

    partition: str
    """As `partition_text` gives it."""
    files_digest: str
    small_files: int
    small_bytes: int


@dataclass(frozen=True)
class UpkeepRecord:
    """One step that was tried on one table: what was promised, what came of it, and where the
    table's metadata was when the round had ended.

    A later look at the same `metadata_location` finds a table that nobody changed since.
    `rows` is how many the table had. `figures` are those of `StepResult`.
    """

    table: str
    step: StepName
    outcome: StepOutcome
    ended_at: datetime
    metadata_location: str
    run_id: str = ""
    reason: str = ""
    promised_fewer_files: int = 0
    promised_cost_bytes: int = 0
    uncorrected: Estimate = field(default_factory=Estimate)
    figures: Mapping[str, float] = field(default_factory=dict)
    partitions: tuple[CompactedPartition, ...] = ()
    rows: int = 0
    lost_race: bool = False

    @property
    def has_looked(self) -> bool:
        """Whether the step saw what there was to do, were it nothing: it neither failed nor
        came after a writer.
        """
        return self.is_done or (self.outcome == "skipped" and not self.lost_race)

    def found_nothing_in(self, health: TableHealth) -> bool:
        """Whether the step looked at the very table that was measured, and found nothing to
        do.
        """
        is_same = self.metadata_location == health.metadata_location
        return is_same and self.has_looked and not self.is_done

    @property
    def is_done(self) -> bool:
        """Whether the step did what it was to do, or a part of it."""
        return self.outcome in ("done", "partial")

    @property
    def fewer_files(self) -> int:
        """How many files there were less afterwards."""
        return int(self.figures.get("files_before", 0) - self.figures.get("files_after", 0))

    @property
    def cost_bytes(self) -> int:
        """How many bytes were read and written; of a step that does not count them, what was
        promised.
        """
        if "rewritten_bytes" not in self.figures:
            return self.promised_cost_bytes if self.is_done else 0
        return int(self.figures.get("rewritten_bytes", 0) + self.figures.get("added_bytes", 0))

    def to_json(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self) | {"ended_at": self.ended_at.isoformat()})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` gave."""
        stored: dict[str, Any] = json.loads(text)
        stored["ended_at"] = datetime.fromisoformat(stored["ended_at"])
        stored["uncorrected"] = Estimate(**stored["uncorrected"])
        stored["partitions"] = tuple(
            CompactedPartition(**partition) for partition in stored["partitions"]
        )
        return cls(**stored)


def record_of(
    planned: PlannedStep,
    result: StepResult,
    health: TableHealth,
    *,
    ended_at: datetime,
    metadata_location: str,
    run_id: str = "",
) -> UpkeepRecord:
    """Return the record of a step.

    :param health: what the step was planned by.
    :param metadata_location: where the table's metadata is when all steps of the round are
        done; earlier, the next look would take what the round did for a change.
    """
    chosen = set(planned.partitions)
    compacted = []
    for partition in health.partitions if planned.step == "compact" else ():
        if partition.key in chosen:
            compacted.append(
                CompactedPartition(
                    partition_text(partition.key),
                    partition.files_digest,
                    partition.small_files,
                    partition.small_bytes,
                )
            )
    return UpkeepRecord(
        table=planned.table,
        step=planned.step,
        outcome=result.outcome,
        ended_at=ended_at,
        metadata_location=metadata_location,
        run_id=run_id,
        reason=result.reason,
        promised_fewer_files=planned.gain.fewer_files,
        promised_cost_bytes=planned.cost_bytes,
        uncorrected=planned.uncorrected,
        figures=dict(result.figures),
        partitions=tuple(compacted),
        rows=live_rows(health),
        lost_race=result.lost_race,
    )


def live_rows(health: TableHealth) -> int:
    """Return how many rows a table has."""
    return health.rows - health.deleted_rows


def partition_text(key: PartitionKey) -> str:
    """Return a partition as people write it, `day=2026-11-24, bucket=3`, after the number of
    its spec; `0: all rows` where the spec has no field.
    """
    values = ", ".join(f"{name}={value}" for name, value in key.values)
    return f"{key.spec_id}: {values or 'all rows'}"
