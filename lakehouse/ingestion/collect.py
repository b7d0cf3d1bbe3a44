"""The inbox's waiting files, collected in order: each is staged to be landed, or rejected with its
reason.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from threading import Event
from typing import TypeVar

from lakehouse.errors import FileRejected, LakehouseError
from lakehouse.ingestion.archive import collecting_errors, move_once
from lakehouse.ingestion.archive_names import evaluate_name, rejected_key
from lakehouse.ingestion.delivery import Delivery, RejectedFile
from lakehouse.ingestion.executor_reading import ExecutorReading, Reading, plan_groups
from lakehouse.ingestion.executor_task import ExecutorTask, NumberedFile
from lakehouse.ingestion.gone_people import GoneRows, IsGone
from lakehouse.ingestion.ingest import Ingest
from lakehouse.ingestion.processed_files import list_unprocessed
from lakehouse.ingestion.refused_file import without_gone_rows
from lakehouse.ingestion.rejected_and_left import read_rejected
from lakehouse.ingestion.rewrite_file import Rewriting, look_into
from lakehouse.ingestion.rewritten_files import RewrittenFiles
from lakehouse.ingestion.staging import StagedFile, Staging
from lakehouse.storage.object_store import ObjectStore, PassedOver, StoredObject
from lakehouse.storage.rejected_files import reason_key
from lakehouse.storage.settling import seconds_until_settled
from lakehouse.tables.feed import Feed

T = TypeVar("T")
Result = StagedFile | FileRejected | None
_AT_ONCE = 4
"""Files that are read at once: one thread seldom fills a core with a file of a few
megabytes.
"""


@dataclass(frozen=True)
class Waiting:
    """What an inbox holds: the complete files by (modified time, key), and the keys of those
    still being written.

    `passed_over` are links, pipes and the like, which are never collected.
    `missing` is the inbox's folder where there is none.
    """

    files: tuple[StoredObject, ...] = ()
    unsettled: tuple[str, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()
    missing: str | None = None

    @property
    def size_bytes(self) -> int:
        """Size of the complete files."""
        return sum(file.size_bytes for file in self.files)


def list_waiting(feed: Feed, store: ObjectStore) -> Waiting:
    """List a feed's inbox; where a file was modified just now, once more when all have settled.
    One that a process has open to write still waits, however old it is: what is written to it
    once it was moved would be in no table.
    """
    return _with_others(_complete_files(feed, store), feed, store)


def list_waiting_now(feed: Feed, store: ObjectStore) -> Waiting:
    """List a feed's inbox without waiting: a file that was modified just now counts as one that is
    still being written.
    """
    seen, now = list_unprocessed(feed, store), datetime.now(UTC)
    complete, unsettled = [], []
    for item in seen:
        if seconds_until_settled(store, item, now):
            unsettled.append(item.key)
        else:
            complete.append(item)
    return _with_others(Waiting(tuple(complete), tuple(unsettled)), feed, store)


def _with_others(waiting: Waiting, feed: Feed, store: ObjectStore) -> Waiting:
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
    """Tell the files that were the same in two listings from those that came or changed."""
    before = set(seen)
    return Waiting(
        tuple(item for item in later if item in before),
        tuple(item.key for item in later if item not in before),
    )


def collect_files(
    store: ObjectStore,
    ingest: Ingest,
    *,
    gone: IsGone | None = None,
    executors: ExecutorReading | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Delivery:
    """Collect what waits in the inbox of the ingest's feed: stage each file, or move it to the
    rejected ones.

    A rejected file does not stop those behind it, also where it cannot be moved. An error of the
    system as a file is read does (a full disk, an unreadable folder): the files stay in the inbox,
    and the next ingest begins with the same.

    All files that are read at once take less than 1 GB together, whatever is in them: each
    has a few blocks of 4 MB between its bytes and its rows, and no more columns than its feed
    and a thousand.

    :param gone: who was erased: their rows are left out, and the files are rewritten without
        them.
    :param executors: read the files in place of this process where that is worth it.
    :param progress: called with the number of bytes read, again and again, by any of some
        threads; with those that executors read at their end.
    """
    feed = ingest.feed
    staging = _plan_staging(store, ingest, gone)
    waiting = list_waiting(feed, store)
    batch = waiting.files[: feed.max_files_per_run]
    reading, results = _read_by_executors(staging, batch, executors, progress)
    rest = [number for number in range(len(batch)) if number not in results]
    results |= _stage_all(staging, batch, rest, progress)
    staged, still_rejected = _apart(staging, results)
    rejected, unsettled = [], list(waiting.unsettled)
    errors: list[LakehouseError] = []
    for number, item in enumerate(batch):
        result = results[number]
        if isinstance(result, StagedFile):
            continue
        with collecting_errors(errors, store, item):
            refused = None
            if result is not None:
                refused = _unless_gone(store, item, partial(_reject, staging, item, result))
            if refused is not None:
                rejected.append(refused)
            else:
                unsettled.append(item.key)
    return Delivery(
        ingest,
        files=tuple(staged),
        rejected=tuple(rejected),
        still_rejected=tuple(still_rejected),
        unsettled=tuple(unsettled),
        not_moved=tuple(errors),
        waiting=len(waiting.files) - len(batch),
        remark=reading.remark if reading else "",
        by_executors=reading is not None,
    )


def _apart(
    staging: Staging, results: Mapping[int, Result]
) -> tuple[list[StagedFile], list[StagedFile]]:
    """Return the staged files in their order, without those that a person rejected and that
    their feed leaves in the inbox; these too, whose rows are staged no more.
    """
    withdrawn = read_rejected(staging.rewriting.feed, staging.rewriting.store)
    staged, still_rejected = [], []
    for _, result in sorted(results.items()):
        if not isinstance(result, StagedFile):
            continue
        if withdrawn.get(result.source_file) == result.sha256:
            staging.rows.remove(result.name)
            still_rejected.append(result)
        else:
            staged.append(result)
    return staged, still_rejected


def _plan_staging(store: ObjectStore, ingest: Ingest, gone: IsGone | None) -> Staging:
    rows = GoneRows(ingest.feed, gone)
    rewriting = Rewriting(
        store,
        ingest.feed,
        RewrittenFiles(store, ingest.feed),
        ingest.staging,
        look_into(ingest.feed, rows),
    )
    return Staging(rewriting, ingest.staging, ingest.rows, ingest.began_at, rows)


def _read_by_executors(
    staging: Staging,
    batch: Sequence[StoredObject],
    executors: ExecutorReading | None,
    progress: Callable[[int], None],
) -> tuple[Reading | None, dict[int, Result]]:
    """Have executors read files where that is worth it, and return what they say, and the files
    that need no look of the driver's, by number.
    """
    files = []
    for number, item in enumerate(batch):
        if not _is_misnamed(staging, item):
            files.append(NumberedFile(number, item))
    sizes = [file.stored.size_bytes for file in files]
    # The key by which the erased are known stays here: Connect has a function's values in plans.
    if executors is None or staging.gone.columns or not executors.is_worth(sizes):
        return None, {}
    task = ExecutorTask(staging.converter, staging.rows, plan_groups(files))
    reading = executors.read(task)
    results: dict[int, Result] = {}
    for outcome in reading.outcomes:
        item = batch[outcome.number]
        result: Result = outcome.refused
        if outcome.converted:
            result = staging.staged_elsewhere(item, outcome.number, outcome.converted)
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
    """Read files, some at once; an error of one, or Ctrl-C, ends the others where they are."""
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
    """Stage a file, or return why it is refused; None where it changed or went while it was
    read.
    """

    store, feed = staging.rewriting.store, staging.rewriting.feed

    def staged() -> Result:
        try:
            evaluate_name(feed, item.key.removeprefix(feed.inbox))
            return staging.stage(item, number, progress)
        except FileRejected as why:
            return why

    result = _unless_gone(store, item, staged)
    if isinstance(result, StagedFile) and store.stat(item.key) != result.stored:
        staging.rows.remove(result.name)
        return None
    return result


def _unless_gone(store: ObjectStore, item: StoredObject, do: Callable[[], T]) -> T | None:
    try:
        return do()
    except FileNotFoundError:
        if store.exists(item.key):
            raise
        return None


def _reject(staging: Staging, seen: StoredObject, why: FileRejected) -> RejectedFile | None:
    """Move a file to the rejected ones; its reason is written first, so that none is ever
    without.

    None where the file changed meanwhile: it stays, and the next ingest reads it anew.
    """
    store, feed = staging.rewriting.store, staging.rewriting.feed
    if store.stat(seen.key) != seen:
        return None
    item, forms, sha256 = without_gone_rows(staging.rewriting, seen, staging.gone)
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
    """Return a rejected file's `.reason.json`."""
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
