"""What a failed commit means, and how often it is tried again; the one place that reads Java's
errors.

The same Java error arrives as another Python type on Spark Connect, with the Java class in its
text: the text decides. Iceberg retries `CommitFailedException` of data commits by itself, but
not operations on refs.
"""

import random
import time
from collections.abc import Callable
from enum import Enum
from typing import TypeVar

from lakehouse.errors import CommitUnknown, LakehouseError
from lakehouse.iceberg.metadata.error_explanations import text_of

T = TypeVar("T")

REF_ATTEMPTS = 20
"""Of an operation on refs, each of which takes moments."""
WRITE_ATTEMPTS = 40
"""Of a whole write, which computes its rows again. Four writers of one table without a common
lock lose three of four races; 40 tries fail one in 100,000 times.
"""
DIRECT_APPEND_ATTEMPTS = 10
"""Of an append of few rows without Spark, which is made again with the next run at the
latest.
"""
LOST_ROWS_ATTEMPTS = 4
"""Of a whole write whose executors end in the middle of it; Spark tries a task as often. More of
them would end whatever is tried.
"""
_LONGEST_PAUSE_SECONDS = 5.0


class FenceLost(Exception):
    """A write's branch is not what it left there; the write starts again."""


class Failure(Enum):
    """What a failed Spark or catalog call was."""

    MOVED = "another writer moved main, or took the branch away"
    CONFLICT = "another commit came first"
    BUSY = "the catalog's database was locked"
    UNKNOWN = "the commit may or may not have happened"
    LOST = "executors of Spark ended, and rows that they had computed went with them"
    OTHER = "anything else"


_SIGNS: tuple[tuple[Failure, tuple[str, ...]], ...] = (
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
            # PyIceberg says so of a commit to another branch that came first.
            "older than last sequence number",
        ),
    ),
    (
        Failure.LOST,
        (
            # Spark 3.5 says it without the name.
            "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND",
            "Checkpoint block rdd_",
            "ExecutorLostFailure",
            "FetchFailed",
        ),
    ),
)


def classify(error: BaseException) -> Failure:
    """Say what an error of Spark or of the catalog means for the commit that raised it.

    An error of ours has been through this already, and may quote what it gave up on.
    """
    if isinstance(error, LakehouseError):
        return Failure.OTHER
    text = text_of(error)
    for failure, signs in _SIGNS:
        if any(sign in text for sign in signs):
            return failure
    return Failure.OTHER


def pause(attempt: int) -> None:
    """Sleep before attempt number `attempt + 1`: exponential, up to 5 s, with full jitter."""
    time.sleep(random.uniform(0, min(_LONGEST_PAUSE_SECONDS, 0.1 * 2**attempt)))


def retry_on_refs(
    action: Callable[[], T], done: Callable[[], bool] = lambda: False
) -> T | None:
    """Run an operation on refs again while others' commits come first or the database is
    locked.

    :param done: looks up whether the operation has already happened; asked after each failure.
    :raises CommitUnknown: when the last failure left open whether it happened, and it had not
        when it was looked up.
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
        " catalog could not tell whether it happened:"
        f" {str(last).strip().splitlines()[0][:200]!r}.",
        next_step="Look in the table's history whether it was made, before you run this again.",
    ) from last
