"""How long a file must be unchanged to be complete."""

from datetime import datetime

from lakehouse.storage.object_store import ObjectStore, StoredObject

UNTOLD_SECONDS = 5.0
"""The time if open files cannot be detected: a sender's network may stall for longer than a
local process pauses.
"""


def seconds_until_settled(store: ObjectStore, item: StoredObject, now: datetime) -> float:
    """Return how long to wait until an unchanged object is complete; 0 if it is."""
    # If another clock is ahead, the age is negative.
    age_seconds = abs((now - item.modified_at).total_seconds())
    needed_seconds = store.settle_seconds
    if age_seconds < UNTOLD_SECONDS and store.is_being_written(item.key) is None:
        needed_seconds = max(needed_seconds, UNTOLD_SECONDS)
    return max(0.0, needed_seconds - age_seconds)
