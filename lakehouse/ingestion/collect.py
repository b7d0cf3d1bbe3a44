"""Collect the waiting files of an inbox in order: stage each one, or reject it with a reason."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from threading import Event
from typing import TypeVar

from lakehouse.errors import FileRejected, LakehouseError
from lakehouse.iceberg.erasure.suppression_list import NO_SUPPRESSION, SuppressionList
from lakehouse.ingestion.archive import collecting_errors, move_to_rejected, sha256_of
from lakehouse.ingestion.archive_names import evaluate_name
from lakehouse.ingestion.collected_files import Delivery
from lakehouse.ingestion.feed_lock import Ingest
from lakehouse.ingestion.found_rows import FoundRows, find_rows
from lakehouse.ingestion.processed_files import list_unprocessed
from lakehouse.ingestion.rewrite_file import Rewriting, RowNumbers, look_into
from lakehouse.ingestion.rewritten_files import NOTHING, RewrittenFiles
from lakehouse.ingestion.staging.executor_reading import ExecutorReading, Reading, plan_groups
from lakehouse.ingestion.staging.executor_task import ExecutorTask, NumberedFile
from lakehouse.ingestion.staging.staged_files import StagedFile, Staging
from lakehouse.ingestion.suppressed_rows import SuppressedRows
from lakehouse.storage.object_store import ObjectStore, PassedOver, StoredObject
from lakehouse.storage.rejected_files import RejectedFile
from lakehouse.storage.unfinished_files import seconds_until_settled
from lakehouse.tables.feed import Feed

T = TypeVar("T")
Result = StagedFile | FileRejected | None
_AT_ONCE = 4
"""Files read concurrently; one thread rarely fills a core with files of a few megabytes."""


@dataclass(frozen=True)
class Waiting:
    """The contents of an inbox: complete files by (modified time, key), and keys still being
    written.

    `passed_over` are links, pipes and similar entries, which are never collected. `missing` is
    the inbox folder if it does not exist.
    """

    files: tuple[StoredObject, ...] = ()
    unsettled: tuple[str, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()
    missing: str | None = None

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


def list_waiting(feed: Feed, store: ObjectStore) -> Waiting:
    """List a feed's inbox. If a file was modified recently, wait until it settles and list
    again. A file that a process has open for writing keeps waiting: data written after a move
    would be lost.
    """
    return _with_skipped(_complete_files(feed, store), feed, store)


def list_waiting_now(feed: Feed, store: ObjectStore) -> Waiting:
    """List a feed's inbox; a recently modified file counts as still being written."""
    seen, now = list_unprocessed(feed, store), datetime.now(UTC)
    complete, unsettled = [], []
    for item in seen:
        if seconds_until_settled(store, item, now):
            unsettled.append(item.key)
        else:
            complete.append(item)
    return _with_skipped(Waiting(tuple(complete), tuple(unsettled)), feed, store)


def _with_skipped(waiting: Waiting, feed: Feed, store: ObjectStore) -> Waiting:
    is_open = {item: store.is_being_written(item.key) for item in waiting.files}
    return Waiting(
        tuple(item for item in waiting.files if not is_open[item]),
        (*waiting.unsettled, *(item.key for item in waiting.files if is_open[item])),
        tuple(store.passed_over(feed.inbox)),
        store.missing(feed.inbox),
    )


def _complete_files(feed: Feed, store: ObjectStore) -> Waiting:
    seen, now = list_unprocessed(feed, store), datetime.now(UTC)
    seconds = max((seconds_until_settled(store, item, now) for item in seen), default=0.0)
    if not seconds:
        return Waiting(tuple(seen))
    time.sleep(seconds)
    return plan_waiting(seen, list_unprocessed(feed, store))


def plan_waiting(seen: list[StoredObject], later: list[StoredObject]) -> Waiting:
    """Split the files of two listings into unchanged files and new or changed ones."""
    before = set(seen)
    return Waiting(
        tuple(item for item in later if item in before),
        tuple(item.key for item in later if item not in before),
    )


def collect_files(
    store: ObjectStore,
    ingest: Ingest,
    *,
    suppression: SuppressionList = NO_SUPPRESSION,
    executors: ExecutorReading | None = None,
) -> Delivery:
    """Stage each file that waits in the inbox, or move it to the rejected files.

    A rejected file does not stop the following files, even if it cannot be moved. A system
    error while reading (a full disk, an unreadable folder) stops the ingest. The files stay in
    the inbox and the next ingest starts with them.

    All files read concurrently use less than 1 GB together. Each one has a few blocks of 4 MB
    between its bytes and its rows, and at most a thousand columns more than its feed.

    :param suppression: rows of erased data subjects do not land, and are removed from the
        files.
    :param executors: read the files in place of this process where that is worth it.
    """
    feed = ingest.feed
    staging = _plan_staging(store, ingest, suppression)
    waiting = list_waiting(feed, store)
    batch = waiting.files[: feed.max_files_per_run]
    reading, results = _read_by_executors(staging, batch, executors)
    rest = [number for number in range(len(batch)) if number not in results]
    results |= _stage_all(staging, batch, rest)
    staged, rejected, unsettled = [], [], list(waiting.unsettled)
    errors: list[LakehouseError] = []
    for number, item in enumerate(batch):
        result = results[number]
        if isinstance(result, StagedFile):
            staged.append(result)
            continue
        with collecting_errors(errors, store, item):
            rejected_file = None
            if result is not None:
                rejected_file = _unless_removed(
                    store, item, partial(_reject, staging, item, result)
                )
            if rejected_file is not None:
                rejected.append(rejected_file)
            else:
                unsettled.append(item.key)
    return Delivery(
        ingest,
        files=tuple(staged),
        rejected=tuple(rejected),
        unsettled=tuple(unsettled),
        not_moved=tuple(errors),
        waiting=len(waiting.files) - len(batch),
        remark=reading.remark if reading else "",
        by_executors=reading is not None,
    )


def _plan_staging(store: ObjectStore, ingest: Ingest, suppression: SuppressionList) -> Staging:
    rows = SuppressedRows.of(ingest.feed, suppression)
    rewriting = Rewriting(
        store,
        ingest.feed,
        RewrittenFiles(store, ingest.feed),
        ingest.staging,
        look_into(ingest.feed, rows),
    )
    return Staging(rewriting, ingest.rows, ingest.started_at, rows)


def _read_by_executors(
    staging: Staging,
    batch: Sequence[StoredObject],
    executors: ExecutorReading | None,
) -> tuple[Reading | None, dict[int, Result]]:
    """Let executors read the files if it is worth it; return their results by file number."""
    files = []
    for number, item in enumerate(batch):
        if not _is_misnamed(staging, item):
            files.append(NumberedFile(number, item))
    sizes = [file.stored.size_bytes for file in files]
    # The suppression key must not leave the driver: Spark Connect stores a function's values in
    # plans.
    if executors is None or staging.suppressed.columns or not executors.is_worth(sizes):
        return None, {}
    task = ExecutorTask(staging.converter, staging.rows, plan_groups(files))
    reading = executors.read(task)
    results: dict[int, Result] = {}
    for outcome in reading.outcomes:
        item = batch[outcome.number]
        result: Result = outcome.rejected
        if outcome.converted:
            result = staging.staged_by_executor(item, outcome.number, outcome.converted)
        if result is not None:
            results[outcome.number] = result
    return reading, results


def _is_misnamed(staging: Staging, item: StoredObject) -> bool:
    feed = staging.rewriting.feed
    try:
        evaluate_name(feed, item.key.removeprefix(feed.inbox))
    except FileRejected:
        return True
    return False


def _stage_all(
    staging: Staging,
    batch: Sequence[StoredObject],
    numbers: Sequence[int],
) -> dict[int, Result]:
    """Read files concurrently; an error in one, or Ctrl-C, stops all."""
    stop = Event()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        reading = {
            number: pool.submit(_stage, staging, number, batch[number], stop)
            for number in numbers
        }
        try:
            for future in wait(reading.values(), return_when=FIRST_EXCEPTION).done:
                future.result()
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return {number: future.result() for number, future in reading.items()}


def _stage(
    staging: Staging,
    number: int,
    item: StoredObject,
    stop: Event,
) -> Result:
    """Stage a file, or return why it is rejected; None if it changed or was removed."""

    store, feed = staging.rewriting.store, staging.rewriting.feed

    def staged() -> Result:
        try:
            evaluate_name(feed, item.key.removeprefix(feed.inbox))
            return staging.stage(item, number, stop)
        except FileRejected as why:
            return why

    result = _unless_removed(store, item, staged)
    if isinstance(result, StagedFile) and store.stat(item.key) != result.stored:
        staging.rows.remove(result.name)
        return None
    return result


def _unless_removed(store: ObjectStore, item: StoredObject, do: Callable[[], T]) -> T | None:
    try:
        return do()
    except FileNotFoundError:
        if store.exists(item.key):
            raise
        return None


def _reject(staging: Staging, seen: StoredObject, why: FileRejected) -> RejectedFile | None:
    """Move a file to the rejected files; None if it changed and is read again."""
    store, feed = staging.rewriting.store, staging.rewriting.feed
    if store.stat(seen.key) != seen:
        return None
    item, forms, sha256 = _without_erased_rows(staging, seen)
    if item is None:
        return None
    source_file = item.key.removeprefix(feed.inbox)
    file = RejectedFile(feed.name, source_file, sha256, why, datetime.now(UTC))
    return move_to_rejected(store, feed, item, forms, file)


def _without_erased_rows(
    staging: Staging, seen: StoredObject
) -> tuple[StoredObject | None, frozenset[str], str]:
    """Rewrite a rejected file without rows of erased data subjects, as far as it can be divided
    into rows, and without rows that earlier requests erased.

    :return: the file, None if it changed; the hashes of its delivery, and its original hash.
    """
    rewriting, ledger, store = (
        staging.rewriting,
        staging.rewriting.ledger,
        staging.rewriting.store,
    )
    if ledger.is_empty and not staging.suppressed.columns:
        matches = FoundRows(sha256_of(store, seen.key), 0)
    else:
        open_file = partial(store.open, seen.key)
        matches = find_rows(rewriting.feed, seen.key, open_file, staging.suppressed)
    known = ledger.find(seen.key, matches.sha256)
    forms = known.forms | {matches.sha256}
    if known.is_erased and matches.sha256 != NOTHING:
        return rewriting.leave_nothing(seen, matches.sha256, known), forms, known.sha256
    numbers = RowNumbers.without(known.missing)
    rows = {numbers.number(position) for position in matches.positions}
    rows |= known.erased - known.missing
    if not rows:
        return seen, forms, known.sha256
    item = rewriting.leave_out(seen, matches, known, rows)
    return item, forms | ledger.find(seen.key, known.sha256).forms, known.sha256
