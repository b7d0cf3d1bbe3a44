"""Recommendations for writers whose files are compacted too often."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from lakehouse.iceberg.metadata.measured_health import TableHealth
from lakehouse.maintenance.daily_bytes import size_text
from lakehouse.maintenance.past_upkeep import PastUpkeep
from lakehouse.maintenance.upkeep_record import CompactedPartition

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
