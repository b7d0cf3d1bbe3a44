"""Collect the waiting files of an inbox in order: stage each one, or reject it with a reason."""

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from threading import Event
from typing import TypeVar

from lakehouse.errors import FileRejected, LakehouseError
from lakehouse.iceberg.erasure.suppression_list import NO_SUPPRESSION, SuppressionList
from lakehouse.ingestion.archive import collecting_errors, move_once
from lakehouse.ingestion.archive_names import evaluate_name, rejected_key
from lakehouse.ingestion.delivery import Delivery, RejectedFile
from lakehouse.ingestion.executor_reading import ExecutorReading, Reading, plan_groups
from lakehouse.ingestion.executor_task import ExecutorTask, NumberedFile
from lakehouse.ingestion.ingest import Ingest
from lakehouse.ingestion.processed_files import list_unprocessed
from lakehouse.ingestion.refused_file import without_erased_rows
from lakehouse.ingestion.rewrite_file import Rewriting, look_into
from lakehouse.ingestion.rewritten_files import RewrittenFiles
from lakehouse.ingestion.staging import StagedFile, Staging
from lakehouse.ingestion.suppressed_rows import SuppressedRows
from lakehouse.storage.object_store import ObjectStore, PassedOver, StoredObject
from lakehouse.storage.rejected_files import reason_key
from lakehouse.storage.settling import seconds_until_settled
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
    files, unsettled = [], list(waiting.unsettled)
    for item in waiting.files:
        if store.is_being_written(item.key):
            unsettled.append(item.key)
        else:
            files.append(item)
    return replace(
        waiting,
        files=tuple(files),
        unsettled=tuple(unsettled),
        passed_over=tuple(store.passed_over(feed.inbox)),
        missing=store.missing(feed.inbox),
    )


def _complete_files(feed: Feed, store: ObjectStore) -> Waiting:
    seen, now = list_unprocessed(feed, store), datetime.now(UTC)
    missing = max((seconds_until_settled(store, item, now) for item in seen), default=0.0)
    if not missing:
        return Waiting(tuple(seen))
    time.sleep(missing)
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
    progress: Callable[[int], None] = lambda _: None,
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
    :param progress: called with the number of bytes read, again and again, by any of some
        threads; with those that executors read at their end.
    """
    feed = ingest.feed
    staging = _plan_staging(store, ingest, suppression)
    waiting = list_waiting(feed, store)
    batch = waiting.files[: feed.max_files_per_run]
    reading, results = _read_by_executors(staging, batch, executors, progress)
    rest = [number for number in range(len(batch)) if number not in results]
    results |= _stage_all(staging, batch, rest, progress)
    staged, rejected, unsettled = [], [], list(waiting.unsettled)
    errors: list[LakehouseError] = []
    for number, item in enumerate(batch):
        result = results[number]
        if isinstance(result, StagedFile):
            staged.append(result)
            continue
        with collecting_errors(errors, store, item):
            refused = None
            if result is not None:
                refused = _unless_removed(store, item, partial(_reject, staging, item, result))
            if refused is not None:
                rejected.append(refused)
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
    return Staging(rewriting, ingest.staging, ingest.rows, ingest.started_at, rows)


def _read_by_executors(
    staging: Staging,
    batch: Sequence[StoredObject],
    executors: ExecutorReading | None,
    progress: Callable[[int], None],
) -> tuple[Reading | None, dict[int, Result]]:
    """Let executors read the files if it is worth it. Return their result, and the files that
    the driver does not need to read, by number.
    """
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
        result: Result = outcome.refused
        if outcome.converted:
            result = staging.staged_by_executor(item, outcome.number, outcome.converted)
        if result is not None:
            results[outcome.number] = result
            progress(item.size_bytes)
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
    progress: Callable[[int], None],
) -> dict[int, Result]:
    """Read files concurrently; an error in one, or Ctrl-C, stops all."""
    is_over = Event()

    def report(count: int) -> None:
        if is_over.is_set():
            raise InterruptedError("Another file of the delivery could not be read.")
        progress(count)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        reading = {
            number: pool.submit(_stage, staging, number, batch[number], report)
            for number in numbers
        }
        try:
            for future in wait(reading.values(), return_when=FIRST_EXCEPTION).done:
                future.result()
        except BaseException:
            is_over.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return {number: future.result() for number, future in reading.items()}


def _stage(
    staging: Staging,
    number: int,
    item: StoredObject,
    progress: Callable[[int], None],
) -> Result:
    """Stage a file, or return the reason for its rejection; None if it changed or was removed
    during reading.
    """

    store, feed = staging.rewriting.store, staging.rewriting.feed

    def staged() -> Result:
        try:
            evaluate_name(feed, item.key.removeprefix(feed.inbox))
            return staging.stage(item, number, progress)
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
    """Move a file to the rejected files, writing its reason first.

    Return None if the file changed in the meantime; the next ingest reads it again.
    """
    store, feed = staging.rewriting.store, staging.rewriting.feed
    if store.stat(seen.key) != seen:
        return None
    item, forms, sha256 = without_erased_rows(staging.rewriting, seen, staging.suppressed)
    if item is None:
        return None
    source_file = item.key.removeprefix(feed.inbox)

    def key(digits: int) -> str:
        return rejected_key(feed, source_file, sha256, digits)

    def rejected(target: str) -> RejectedFile:
        return RejectedFile(feed.name, source_file, sha256, why, datetime.now(UTC), target)

    def explain(target: str) -> None:
        store.write_text(reason_key(target), format_reason(rejected(target)))

    target = move_once(store, item, forms, key, before=explain)
    return rejected(target) if target else None


def format_reason(file: RejectedFile) -> str:
    """Return the content of a `.reason.json` file."""
    reason = {
        "feed": file.feed,
        "file": file.source_file,
        "sha256": file.sha256,
        "reason": file.why.reason,
        "found": file.why.found,
        "expected": file.why.expected,
        "rejected_at": file.rejected_at.isoformat(),
        "next_step": file.why.next_step,
    }
    return json.dumps(reason, indent=2) + "\n"
