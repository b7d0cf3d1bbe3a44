"""A value that a run measured for a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

RECORD_COUNT, DAILY_GROWTH, NR_ROWS = "record_count", "daily_growth", "nr_rows"
FAILED_FRACTION = "failed_fraction"
NO_ANOMALY = "no_anomaly"
"""Name of the check that compares metrics with their history."""


@dataclass(frozen=True)
class Metric:
    """A metric value, its table and snapshot, and when it was measured.

    `of_rows` is the row count that a fraction refers to, if known; it is not stored. `run_id`
    is the run that measured it, for values read from the metrics table.
    """

    table: str
    name: str
    value: float
    measured_at: datetime
    snapshot_id: int | None = None
    partition: str | None = None
    of_rows: int | None = None
    run_id: str = ""

    def row(self, run_id: str) -> Mapping[str, Any]:
        """Return the row for `monitoring.data_quality_metrics`."""
        return {
            "table_name": self.table,
            "metric": self.name,
            "value": float(self.value),
            "measured_at": self.measured_at,
            "snapshot_id": self.snapshot_id,
            "partition": self.partition,
            "run_id": run_id,
        }


def partition_text(partitions: Sequence[str]) -> str | None:
    """Describe a run's partitions: the only one, or the first and the last."""
    if not partitions:
        return None
    return partitions[0] if len(partitions) == 1 else f"{partitions[0]}..{partitions[-1]}"
