"""History of upkeep runs: unchanged tables, ineffective runs, failures, estimate corrections."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

from lakehouse.iceberg.metadata.measured_health import PartitionHealth
from lakehouse.iceberg.upkeep.step_result import StepName
from lakehouse.maintenance.upkeep_record import (
    CompactedPartition,
    UpkeepRecord,
    partition_text,
)

CORRECTED_BY = 5
"""Number of newest runs for a correction: fewer are noisy, more adapt too slowly."""
LEAST_FACTOR, MOST_FACTOR = 0.25, 4.0
"""Bounds of a correction, so that one outlier neither stops upkeep nor unbounds it."""
FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=15), timedelta(days=1)
"""Delay after a failed step; doubles after each further failure."""


@dataclass(frozen=True)
class Correction:
    """Factors for the estimates of a step."""

    of_gain: float = 1.0
    of_cost: float = 1.0


@dataclass(frozen=True)
class PastUpkeep:
    """Records of past upkeep of all tables."""

    records: tuple[UpkeepRecord, ...] = ()

    @cached_property
    def _by_step(self) -> dict[tuple[str, StepName], list[UpkeepRecord]]:
        by_step = defaultdict(list)
        for record in sorted(self.records, key=lambda record: record.ended_at):
            by_step[record.table, record.step].append(record)
        return dict(by_step)

    def of(self, table: str, step: StepName) -> list[UpkeepRecord]:
        """Return the records of a step of a table, oldest first."""
        return self._by_step.get((table, step), [])

    def times_of(self, table: str) -> list[datetime]:
        """Return the times of all upkeep records of a table."""
        return [record.ended_at for record in self.records if record.table == table]

    def last_done(self, table: str, step: StepName) -> UpkeepRecord | None:
        """Return the newest successful record of a step; None without one."""
        done = [record for record in self.of(table, step) if record.is_done]
        return done[-1] if done else None

    def last_evaluated(self, table: str, step: StepName) -> UpkeepRecord | None:
        """Return the newest record of a step that evaluated the table; None without one."""
        evaluated = [record for record in self.of(table, step) if record.has_evaluated]
        return evaluated[-1] if evaluated else None

    def pause_until(self, table: str, step: StepName) -> datetime | None:
        """Return the end of the delay after failures or commit conflicts; None without one."""
        in_vain = 0
        records = self.of(table, step)
        for record in reversed(records):
            if record.has_evaluated:
                break
            in_vain += 1
        if not in_vain:
            return None
        pause = FIRST_PAUSE * (1 << min(in_vain - 1, 10))
        return records[-1].ended_at + min(pause, LONGEST_PAUSE)

    @cached_property
    def _compacted_files(self) -> Counter[tuple[str, str, str]]:
        """Number of compactions of the same files of a partition."""
        times: Counter[tuple[str, str, str]] = Counter()
        for record in self.records:
            if record.step == "compact" and record.has_evaluated:
                for before in record.partitions:
                    times[record.table, before.partition, before.files_digest] += 1
        return times

    def times_in_vain(self, table: str, partition: PartitionHealth) -> int:
        """Return how often the current files of a partition were compacted without effect."""
        files = (table, partition_text(partition.key), partition.files_digest)
        return self._compacted_files[files]

    def compactions_since(
        self, table: str, since: datetime
    ) -> dict[str, list[CompactedPartition]]:
        """Return the state of each partition before its compactions since a time, oldest first."""
        compacted = defaultdict(list)
        for record in self.of(table, "compact"):
            if record.is_done and record.ended_at >= since:
                for before in record.partitions:
                    compacted[before.partition].append(before)
        return dict(compacted)

    def spent_bytes(self, now: datetime) -> int:
        """Return the bytes read and written by all upkeep on this UTC day."""
        today = now.astimezone(UTC).date()
        return sum(
            record.cost_bytes
            for record in self.records
            if record.ended_at.astimezone(UTC).date() == today
        )

    def correction(self, table: str, step: StepName) -> Correction:
        """Return the correction of a step's estimates: actual over uncorrected values."""
        done = [record for record in self.of(table, step) if record.is_done][-CORRECTED_BY:]
        return Correction(
            of_gain=_ratio(
                (record.fewer_files, record.uncorrected.fewer_files) for record in done
            ),
            of_cost=_ratio(
                (record.cost_bytes, record.uncorrected.cost_bytes) for record in done
            ),
        )


def _ratio(pairs: Iterable[tuple[int, int]]) -> float:
    actual = expected = 0
    for realised, estimated in pairs:
        if estimated > 0:
            actual += realised
            expected += estimated
    if not expected:
        return 1.0
    return min(max(actual / expected, LEAST_FACTOR), MOST_FACTOR)
