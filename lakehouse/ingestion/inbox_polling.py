"""Poll an inbox, to see a file before the next sensor tick."""

import time
from collections.abc import Callable

from lakehouse.ingestion.collect import Waiting, list_waiting
from lakehouse.ingestion.processed_files import list_unprocessed
from lakehouse.storage.object_store import ObjectStore
from lakehouse.tables.feed import Feed


def poll_inbox(
    feed: Feed,
    store: ObjectStore,
    seconds: float,
    seen: Waiting,
) -> Waiting:
    """Poll until something complete waits that was not seen before, or the seconds are over."""
    known = set(seen.files)

    def news() -> bool:
        return any(file not in known for file in list_unprocessed(feed, store))

    if not wait_until(news, seconds, store.poll_seconds):
        return seen
    return list_waiting(feed, store)


def wait_until(is_so: Callable[[], bool], seconds: float, pause: float) -> bool:
    """Poll a condition, at least once, and return whether it became true in time."""
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() + pause > until:
            return False
        time.sleep(pause)
    return True
