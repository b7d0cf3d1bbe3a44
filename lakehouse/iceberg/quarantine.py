"""Refused rows: kept as they were delivered, with their reasons, published before the rows that go on."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from lakehouse.iceberg.candidate import Candidate
from lakehouse.iceberg.engine import Engine
from lakehouse.iceberg.outcome import Outcome, Quarantined
from lakehouse.iceberg.run import Run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Write = Callable[..., Outcome]


def quarantine(
    engine: Engine, candidate: Candidate, run: Run, write: Write, rows: int, frame: "DataFrame | None" = None
) -> Quarantined | None:
    """Merge the refused rows into the quarantine table, idempotently by their source; None where there are none."""
    target = candidate.table.quarantine
    if target is None or rows == 0:
        return None
    outcome = write(engine, target, lambda: candidate.quarantine_rows(frame), run=Run(run.run_id))
    return Quarantined(target.name, rows, outcome.snapshot_id)
