"""Precedence of writers: upkeep never waits for a lock, and yields after a conflict."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import monotonic

from lakehouse.errors import TableBusy
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.commit_retries import Failure, classify
from lakehouse.iceberg.commit.lock import WriteLog, table_lock
from lakehouse.iceberg.frames.spark_errors import one_line
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult

CHUNK_BYTES = 512 * 1024**2
"""How much is rewritten while the lock is held: about 40 s on two cores (116 MB took 9 s)."""
_CONFLICTS = (Failure.CONFLICT, Failure.MOVED)


class CommitConflict(Exception):
    """Another process committed first; the message names it."""


@contextmanager
def free_lock(engine: Engine, table: str) -> Iterator[WriteLog]:
    """Take the lock of a table if it is free.

    :raises CommitConflict: if the table is being written, or after a conflicting commit, also by a
        writer without the lock.
    """
    before = engine.catalog.load(table).metadata_location
    try:
        with table_lock(engine, table, wait_seconds=0) as log:
            yield log
    except TableBusy as error:
        raise CommitConflict(f"{table} is being written") from error
    except Exception as error:
        # Iceberg rejects impossible commits with the same message as late ones.
        has_moved = engine.catalog.load(table).metadata_location != before
        failure = classify(error)
        if failure is Failure.BUSY or (failure in _CONFLICTS and has_moved):
            reason = f"another commit to {table} came first: {one_line(error)}"
            raise CommitConflict(reason) from error
        raise


def run_step(table: str, step: StepName, work: Callable[[], StepResult]) -> StepResult:
    """Run a step and measure its duration in seconds; it is skipped after a conflict."""
    begun = monotonic()
    try:
        result = work()
    except CommitConflict as conflict:
        return replace(skipped(table, step, str(conflict)), had_conflict=True)
    return replace(result, step_metrics={**result.step_metrics, "seconds": monotonic() - begun})


def skipped(table: str, step: StepName, reason: str) -> StepResult:
    """Return the result of a step that did nothing."""
    return StepResult(table, step, "skipped", reason)
