"""Read frequency of tables, from the metrics of runs; no Spark."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.measured_health import PartitionKey
from lakehouse.iceberg.read.scanned_files import READ_SHARE

READ_WINDOW_DAYS = 14
"""Window for read frequencies: two of each weekday."""
UNRECORDED_READS_A_DAY = 0.1
"""Assumed reads by users and other engines, which are not recorded."""


@dataclass(frozen=True)
class TableReads:
    """Reads per day, in units of full table or full partition reads."""

    by_table: Mapping[str, float] = field(default_factory=dict)
    by_partition: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """By table and partition value as text: reads of single partitions."""

    def of_table(self, table: str) -> float:
        """Return how often any part of a table is read per day."""
        of_partitions = (
            reads for (name, _), reads in self.by_partition.items() if name == table
        )
        return UNRECORDED_READS_A_DAY + self.by_table.get(table, 0.0) + sum(of_partitions)

    def of(self, table: str, partition: PartitionKey) -> float:
        """Return how often the files of a partition are read per day.

        A read of one partition value counts for all partitions with that value; other reads
        count for all partitions.
        """
        reads = UNRECORDED_READS_A_DAY + self.by_table.get(table, 0.0)
        values = {str(value) for _, value in partition.values}
        return reads + sum(self.by_partition.get((table, value), 0.0) for value in values)


def count_reads(rows: Iterable[Mapping[str, Any]], days: float) -> TableReads:
    """Return reads per day from metrics rows; ignores other metrics.

    A run of one partition is one read of it. A range `first..last` does not list its
    partitions, so it counts for all partitions by its share of files.
    """
    by_table: dict[str, float] = defaultdict(float)
    by_partition: dict[tuple[str, str], float] = defaultdict(float)
    for row in rows:
        if row["metric"] != READ_SHARE:
            continue
        partition = row["partition"]
        if partition is None or ".." in partition:
            by_table[row["table_name"]] += row["value"] / days
        else:
            by_partition[row["table_name"], partition] += 1 / days
    return TableReads(dict(by_table), dict(by_partition))


def recent_reads(catalog: Catalog, metrics_table: str, now: datetime) -> TableReads:
    """Return recent read frequencies; empty without metrics.

    :param metrics_table: has the columns of `monitoring.data_quality_metrics`.
    """
    rows = recorded_reads(catalog, metrics_table, now - timedelta(days=READ_WINDOW_DAYS))
    return count_reads(rows or (), READ_WINDOW_DAYS)


def recorded_reads(
    catalog: Catalog, metrics_table: str, since: datetime
) -> list[dict[str, Any]] | None:
    """Return the metrics rows of reads since a time; None without metrics."""
    if not catalog.has(metrics_table):
        return None
    from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual

    # mypy's stubs, derived from pydantic fields, hide the PyIceberg constructors.
    of_reads = EqualTo("metric", READ_SHARE)  # type: ignore[call-arg,arg-type]
    recent = GreaterThanOrEqual("measured_at", since.isoformat())  # type: ignore[call-arg,arg-type]
    fields = ("table_name", "metric", "value", "partition", "snapshot_id")
    scan = catalog.load(metrics_table).scan(And(of_reads, recent), selected_fields=fields)
    rows: list[dict[str, Any]] = scan.to_arrow().to_pylist()
    return rows
