"""Partitions of a table that benefit from compaction, with gain, cost and blockers."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from lakehouse.iceberg.metadata.measured_health import PartitionHealth, TableHealth
from lakehouse.maintenance.past_upkeep import Correction, PastUpkeep
from lakehouse.maintenance.table_reads import TableReads
from lakehouse.maintenance.upkeep_plan import Estimate, Gain, count_text

LEAST_FILES = 5
"""Minimum number of small or delete files for a partition with ongoing writes: Iceberg's
`min-input-files` of rewrite_data_files. With fewer, each new file would cause a rewrite.
"""
LEAST_FILES_AT_REST = 2
"""Minimum for a partition without ongoing writes: it is rewritten once."""
AT_REST_AFTER = timedelta(days=1)
DELETED_SHARE = 0.1
"""Share of deleted rows that justifies a rewrite, independent of the number of delete files."""
HOT_FOR = timedelta(hours=1)
"""A partition with a newer file waits: more files can follow, and its writer could lose a
commit race.
"""
TOO_MANY_TO_WAIT = 4 * LEAST_FILES
"""With this many files it does not wait: constant writes would delay it forever."""
MOST_TIMES_IN_VAIN = 2
PAID_BACK_IN_DAYS = 30
"""Reads must save the cost of a rewrite within this time."""


@dataclass(frozen=True)
class Need:
    """Reasons for a compaction, and its estimate."""

    reasons: tuple[str, ...]
    files: int
    """Files to be replaced."""
    gain: Gain
    estimate: Estimate


@dataclass(frozen=True)
class Candidate:
    """A partition that benefits from compaction."""

    table: str
    partition: PartitionHealth
    need: Need
    gain: Gain
    cost_bytes: int
    is_in_vain: bool = False
    """Whether the same files were rewritten before without effect."""
    hot_until: datetime | None = None

    @property
    def is_paid_back(self) -> bool:
        """Whether reads save its cost in time."""
        return self.gain.saved_bytes_a_day * PAID_BACK_IN_DAYS >= self.cost_bytes

    @property
    def value(self) -> float:
        """Bytes saved per day for each byte of cost."""
        return self.gain.saved_bytes_a_day / max(self.cost_bytes, 1)


def candidates(
    health: TableHealth,
    reads: TableReads,
    past: PastUpkeep,
    now: datetime,
    *,
    named_by_user: bool = False,
) -> Iterator[Candidate]:
    """Yield the partitions that benefit from compaction, including those that must wait.

    :param named_by_user: a user named this table: two files are sufficient.
    """
    correction = past.correction(health.table, "compact")
    for partition in health.partitions:
        at_rest = named_by_user or _age(partition, now) >= AT_REST_AFTER
        need = need_of(partition, health, LEAST_FILES_AT_REST if at_rest else LEAST_FILES)
        if need is None:
            continue
        reads_a_day = reads.of(health.table, partition.key)
        yield Candidate(
            health.table,
            partition,
            need,
            gain=_corrected_gain(need, correction, reads_a_day),
            cost_bytes=round(need.estimate.cost_bytes * correction.of_cost),
            is_in_vain=past.times_in_vain(health.table, partition) >= MOST_TIMES_IN_VAIN,
            hot_until=_hot_until(partition, need, now),
        )


def need_of(partition: PartitionHealth, health: TableHealth, least: int) -> Need | None:
    """Return why a partition needs compaction; None if it does not.

    :param least: minimum number of files.
    """
    reasons = []
    fewer = partition.fewer_files(health.target_bytes)
    is_small = partition.small_files >= least and fewer >= least - 1
    if is_small:
        reasons.append(count_text(partition.small_files, "small file"))
    live_deletes = partition.delete_files - partition.dangling_delete_files
    deleted_share = partition.deleted_rows / partition.rows if partition.rows else 0.0
    has_deletes = live_deletes > 0 and (live_deletes >= least or deleted_share >= DELETED_SHARE)
    if has_deletes:
        reasons.append(
            f"{count_text(live_deletes, 'delete file')}, of {deleted_share:.0%} of the rows"
        )
    dangling = partition.dangling_delete_files
    if dangling and (least <= LEAST_FILES_AT_REST or dangling >= least):
        reasons.append(f"{count_text(dangling, 'delete file')} of what is not there")
    is_old = partition.data_files > 0 and partition.key.spec_id != health.default_spec_id
    if is_old:
        reasons.append(f"{count_text(partition.data_files, 'file')} of an old partition spec")
    if not reasons:
        return None
    deletes = live_deletes if has_deletes or is_old else 0
    cost_bytes = _cost(partition, all_files=bool(deletes) or is_old)
    if is_old and not partition.key.values:
        # No predicate selects its rows, so the entire table is rewritten.
        cost_bytes = 2 * health.data_bytes + partition.delete_bytes
    fewer_files = (fewer if is_small else 0) + deletes + dangling
    gain = Gain(
        fewer_files=fewer_files,
        skipped_files=partition.data_files if is_old else 0,
        deleted_bytes=round(deleted_share * partition.data_bytes) if deletes else 0,
    )
    return Need(
        reasons=tuple(reasons),
        files=(partition.small_files if is_small else 0) + deletes + dangling,
        gain=gain,
        estimate=Estimate(fewer_files, cost_bytes),
    )


def _cost(partition: PartitionHealth, *, all_files: bool) -> int:
    """Return the bytes to read and write.

    Metadata does not show which files have deletes, so all files count; past results correct it.
    """
    if all_files:
        return 2 * partition.data_bytes + partition.delete_bytes
    return 2 * partition.small_bytes if partition.small_files > 1 else 0


def _corrected_gain(need: Need, correction: Correction, reads_a_day: float) -> Gain:
    return Gain(
        fewer_files=round(need.gain.fewer_files * correction.of_gain),
        skipped_files=need.gain.skipped_files,
        deleted_bytes=need.gain.deleted_bytes,
        reads_a_day=reads_a_day,
    )


def _age(partition: PartitionHealth, now: datetime) -> timedelta:
    if partition.newest_file_at is None:
        # The snapshot that added the file has expired.
        return timedelta.max
    return now - partition.newest_file_at


def _hot_until(partition: PartitionHealth, need: Need, now: datetime) -> datetime | None:
    if _age(partition, now) >= HOT_FOR or need.files >= TOO_MANY_TO_WAIT:
        return None
    assert partition.newest_file_at is not None
    return partition.newest_file_at + HOT_FOR
