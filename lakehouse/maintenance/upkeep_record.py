"""Record of an upkeep step: estimate and result, for later corrections."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Self

from lakehouse.iceberg.metadata.measured_health import PartitionKey, TableHealth
from lakehouse.iceberg.upkeep.step_result import StepName, StepOutcome, StepResult
from lakehouse.maintenance.upkeep_plan import Estimate, PlannedStep

_STORED_NAMES = {"step_metrics": "figures", "had_conflict": "lost_race"}
"""Names of fields in stored records, if they differ."""


@dataclass(frozen=True)
class CompactedPartition:
    """State of a partition before its compaction."""

    partition: str
    """Format: `partition_text`."""
    files_digest: str
    small_files: int
    small_bytes: int


@dataclass(frozen=True)
class UpkeepRecord:
    """An executed step of a table: estimate, result, and final metadata location of the run.

    If a table still has this `metadata_location`, no other commit has changed it. `rows` is the
    row count of the table; `step_metrics` are the metrics of `StepResult`.
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
    step_metrics: Mapping[str, float] = field(default_factory=dict)
    partitions: tuple[CompactedPartition, ...] = ()
    rows: int = 0
    had_conflict: bool = False

    @property
    def has_evaluated(self) -> bool:
        """Whether the step evaluated the table: it neither failed nor had a conflict."""
        return self.is_done or (self.outcome == "skipped" and not self.had_conflict)

    def found_nothing_in(self, health: TableHealth) -> bool:
        """Whether the step evaluated the same table state and found nothing to do."""
        is_same = self.metadata_location == health.metadata_location
        return is_same and self.has_evaluated and not self.is_done

    @property
    def is_done(self) -> bool:
        """Whether the step did all or part of its work."""
        return self.outcome in ("done", "partial")

    @property
    def fewer_files(self) -> int:
        """Reduction of the number of files."""
        return int(
            self.step_metrics.get("files_before", 0) - self.step_metrics.get("files_after", 0)
        )

    @property
    def cost_bytes(self) -> int:
        """Bytes read and written; the estimate if the step does not count them."""
        if "rewritten_bytes" not in self.step_metrics:
            return self.promised_cost_bytes if self.is_done else 0
        return int(
            self.step_metrics.get("rewritten_bytes", 0)
            + self.step_metrics.get("added_bytes", 0)
        )

    def to_json(self) -> str:
        """Return the JSON form."""
        fields = asdict(self) | {"ended_at": self.ended_at.isoformat()}
        return json.dumps({_STORED_NAMES.get(name, name): fields[name] for name in fields})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse the output of `to_json`."""
        stored: dict[str, Any] = json.loads(text)
        for name, stored_name in _STORED_NAMES.items():
            if stored_name in stored:
                stored[name] = stored.pop(stored_name)
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

    :param health: table health at planning time.
    :param metadata_location: location after the last step of the run: with an earlier one, the
        next check would treat the run's own commits as a change.
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
        step_metrics=dict(result.step_metrics),
        partitions=tuple(compacted),
        rows=live_rows(health),
        had_conflict=result.had_conflict,
    )


def live_rows(health: TableHealth) -> int:
    """Return the number of live rows of a table."""
    return health.rows - health.deleted_rows


def partition_text(key: PartitionKey) -> str:
    """Return a partition as text after its spec id: `0: day=2026-11-24, bucket=3`.

    Unpartitioned: `0: all rows`.
    """
    values = ", ".join(f"{name}={value}" for name, value in key.values)
    return f"{key.spec_id}: {values or 'all rows'}"
