"""One number that a run measured of a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

RECORD_COUNT, DAILY_GROWTH, NR_ROWS = "record_count", "daily_growth", "nr_rows"
FAILED_FRACTION = "failed_fraction"
NO_ANOMALY = "no_anomaly"
"""Name of the check that compares the others with their past."""


@dataclass(frozen=True)
class Metric:
    """A number, of which table and snapshot it is, and when it was measured.

    `of_rows` is how many rows a fraction is of, where that is known; it is not kept. `run_id` is
    the run that measured it, where it was read from what is kept.
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
        """Return the row of `monitoring.data_quality_metrics`."""
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
    """Return a run's partitions in few characters: the one, or the first and the last."""
    if not partitions:
        return None
    return partitions[0] if len(partitions) == 1 else f"{partitions[0]}..{partitions[-1]}"
