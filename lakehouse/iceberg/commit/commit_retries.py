"""Classification and retries of failed commits; the only module that interprets Java errors.

On Spark Connect the same Java error has another Python type, so the text with the Java class is
used. Iceberg retries `CommitFailedException` of data commits itself, but not operations on
refs.
"""

import random
import time
from collections.abc import Callable
from enum import Enum
from typing import TypeVar

from lakehouse.errors import CommitUnknown, LakehouseError
from lakehouse.iceberg.frames.spark_errors import text_of

T = TypeVar("T")

REF_ATTEMPTS = 20
"""For an operation on refs, which is short."""
WRITE_ATTEMPTS = 40
"""For a write, which recomputes its rows. Four writers of one table without a common lock lose
three of four races; 40 attempts fail once in 100,000.
"""
DIRECT_APPEND_ATTEMPTS = 10
"""For an append of few rows without Spark, which the next run repeats at the latest."""
EXECUTOR_LOSS_ATTEMPTS = 4
"""For a write whose executors are lost, the same number as Spark's task attempts; more losses
have a permanent cause.
"""
_LONGEST_PAUSE_SECONDS = 5.0


class FenceLost(Exception):
    """A write's branch was changed or dropped; the write is retried."""


class Failure(Enum):
    """Kind of a failed Spark or catalog call."""

    MOVED = "another writer moved main, or took the branch away"
    CONFLICT = "another commit came first"
    BUSY = "the catalog's database was locked"
    UNKNOWN = "the commit may or may not have happened"
    EXECUTORS_LOST = "executors were lost with computed rows"
    OTHER = "anything else"


_PATTERNS: tuple[tuple[Failure, tuple[str, ...]], ...] = (
    (Failure.UNKNOWN, ("CommitStateUnknownException",)),
    (
        Failure.MOVED,
        (
            "is not an ancestor of",
            "Cannot use branch (does not exist)",
            "Ref does not exist",
            "FenceLost",
        ),
    ),
    (Failure.BUSY, ("SQLITE_BUSY", "database is locked", "database table is locked")),
    (
        Failure.CONFLICT,
        (
            "CommitFailedException",
            "Table metadata refresh is required",
            "ValidationException",
            "ConcurrentModificationException",
            # PyIceberg's message after a conflicting commit to another branch.
            "older than last sequence number",
        ),
    ),
    (
        Failure.EXECUTORS_LOST,
        (
            # Spark 3.5 has the message without the condition.
            "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND",
            "Checkpoint block rdd_",
            "ExecutorLostFailure",
            "FetchFailed",
        ),
    ),
)


def classify(error: BaseException) -> Failure:
    """Classify an error of Spark or the catalog by its meaning for the commit.

    Errors of the lakehouse were classified before, and can quote other errors.
    """
    if isinstance(error, LakehouseError):
        return Failure.OTHER
    text = text_of(error)
    for failure, patterns in _PATTERNS:
        if any(sign in text for sign in patterns):
            return failure
    return Failure.OTHER


def first_line(error: Exception) -> str:
    """Return the start of an error's message; its type if it has none."""
    return [*str(error).strip().splitlines(), type(error).__name__][0][:200]


def pause(attempt: int) -> None:
    """Sleep before attempt number `attempt + 1`: exponential, up to 5 s, with full jitter."""
    time.sleep(random.uniform(0, min(_LONGEST_PAUSE_SECONDS, 0.1 * 2**attempt)))


def retry_on_refs(
    action: Callable[[], T], done: Callable[[], bool] = lambda: False
) -> T | None:
    """Retry an operation on refs after conflicts, and while the database is locked.

    :param done: checks whether the operation has already happened; called after each failure.
    :raises CommitUnknown: if the last outcome is unknown, and the check failed.
    """
    for attempt in range(REF_ATTEMPTS):
        try:
            return action()
        except Exception as error:
            failure, last = classify(error), error
            if failure not in (Failure.CONFLICT, Failure.BUSY, Failure.UNKNOWN):
                raise
        pause(attempt)
        if done():
            return None
    if failure is not Failure.UNKNOWN:
        raise last
    raise CommitUnknown(
        f"A change of the table's branches was tried {REF_ATTEMPTS} times, and each time the"
        " catalog did not report whether it happened:"
        f" {first_line(last)!r}.",
        next_step="Check the table's history for the change before you run this again.",
    ) from last
