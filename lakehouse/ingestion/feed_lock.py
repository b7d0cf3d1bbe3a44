"""One ingest of a feed at a time per host, with a unique start time and a temporary folder."""

import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lakehouse.errors import TableBusy
from lakehouse.ingestion.staging.staged_rows import BucketStaging, LocalRows, StagedRows
from lakehouse.storage.atomic_files import replace_text
from lakehouse.storage.file_lock import file_lock
from lakehouse.tables.feed import Feed

_log = logging.getLogger(__name__)
WAIT_SECONDS = 3600.0
_CLOCK = "last_ingest"


@dataclass(frozen=True)
class Ingest:
    """A running ingest that holds the feed's lock: its start time, which is later than all
    earlier ones, its local staging folder, and where Spark reads the staged rows.
    """

    feed: Feed
    started_at: datetime
    staging: Path
    rows: StagedRows


@contextmanager
def lock_feed(
    feed: Feed,
    home: Path,
    *,
    wait_seconds: float = WAIT_SECONDS,
    bucket: BucketStaging | None = None,
) -> Iterator[Ingest]:
    """Lock a feed while its files are collected, landed and archived; remove its staging folder
    at the end.

    The operating system releases the lock when the process ends. Staging folders of crashed
    ingests are removed.

    :param bucket: stages rows in a bucket instead of the home.
    :raises TableBusy: if another ingest holds the feed for longer than `wait_seconds`.
    """
    with feed_lock(feed.name, home, wait_seconds):
        folder = home / "staging" / feed.name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        remove_staged(folder)
        if bucket:
            _try_to_remove(bucket.feed_uri(feed.name), lambda: bucket.remove_left(feed.name))
        started_at = _tick(folder / _CLOCK)
        staging = folder / started_at.strftime("%Y%m%dT%H%M%S.%fZ")
        (staging / "rows").mkdir(parents=True)
        in_bucket = bucket.rows(feed.name, staging.name) if bucket else None
        try:
            yield Ingest(feed, started_at, staging, in_bucket or LocalRows(staging / "rows"))
        finally:
            shutil.rmtree(staging, ignore_errors=True)
            if in_bucket:
                _try_to_remove(in_bucket.uri, in_bucket.clear)


def feed_lock(feed_name: str, home: Path, wait_seconds: float) -> AbstractContextManager[None]:
    """Lock a feed against ingests, or raise `TableBusy` after some seconds."""
    busy = TableBusy(
        f"Feed {feed_name} is being ingested by another process, and was not free within"
        f" {wait_seconds:.0f} s.",
        next_step="Wait for that ingest to end, or stop it, and run this again.",
    )
    return file_lock(home / "locks" / f"feed-{feed_name}.lock", wait_seconds, busy)


def remove_staged(folder: Path) -> None:
    """Remove everything staged for a feed; the caller holds its lock."""
    for staging in folder.iterdir():
        if staging.is_dir():
            shutil.rmtree(staging)


def _try_to_remove(place: str, remove: Callable[[], None]) -> None:
    """Remove staged rows from a bucket, or log a warning: landed rows are not affected."""
    try:
        remove()
    except Exception as error:
        _log.warning(
            "Rows staged in %s were not removed; the next ingest of the feed tries again."
            " docs/deploying.md lists the permissions: %s",
            place,
            error,
        )


def _tick(clock: Path) -> datetime:
    """Return the current time, which is later than the last ingest also if the clock is not."""
    now = datetime.now(UTC)
    if clock.exists():
        last = datetime.fromisoformat(clock.read_text(encoding="utf-8"))
        now = max(now, last + timedelta(microseconds=1))
    replace_text(clock, now.isoformat())
    return now
