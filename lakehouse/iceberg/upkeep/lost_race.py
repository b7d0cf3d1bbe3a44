"""Upkeep gives way: it takes a table's lock only where it is free, and where a writer came first
it did nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import monotonic

from lakehouse.errors import TableBusy
from lakehouse.iceberg.commit.lock import WriteLog, table_lock
from lakehouse.iceberg.commit.retry import Failure, classify
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.spark_errors import one_line
from lakehouse.iceberg.upkeep.newer_procedures import ProcedureMissing
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult

_LOST = (Failure.CONFLICT, Failure.MOVED)


class RaceLost(Exception):
    """Somebody else was first, and the table is as they left it; the text says who, for people."""


@contextmanager
def free_lock(engine: Engine, table: str) -> Iterator[WriteLog]:
    """Hold the lock of a table that nobody else holds.

    :raises RaceLost: when it is being written, or when a commit of somebody else, who need not
        know the lock, came before ours.
    """
    before = engine.catalog.load(table).metadata_location
    try:
        with table_lock(engine, table, wait_seconds=0) as log:
            yield log
    except TableBusy as error:
        raise RaceLost(f"{table} is being written") from error
    except Exception as error:
        # Iceberg refuses what can never be done in the same words as what came too late.
        has_moved = engine.catalog.load(table).metadata_location != before
        failure = classify(error)
        if failure is Failure.BUSY or (failure in _LOST and has_moved):
            reason = f"another commit to {table} came first: {one_line(error)}"
            raise RaceLost(reason) from error
        raise


def run_step(table: str, step: StepName, work: Callable[[], StepResult]) -> StepResult:
    """Run a step, and say how many seconds it took; one that lost its race is skipped, and so is
    one that the Iceberg here is too old for.
    """
    begun = monotonic()
    try:
        result = work()
    except RaceLost as lost:
        return replace(skipped(table, step, str(lost)), lost_race=True)
    except ProcedureMissing as missing:
        return skipped(table, step, str(missing))
    return replace(result, figures={**result.figures, "seconds": monotonic() - begun})


def skipped(table: str, step: StepName, reason: str) -> StepResult:
    """Return what came of a step that did nothing."""
    return StepResult(table, step, "skipped", reason)
