"""How long a file must have stood unchanged before it counts as complete."""

from datetime import datetime

from lakehouse.storage.object_store import ObjectStore, StoredObject

UNTOLD_SECONDS = 5.0
"""How long where nobody tells who has the file open: a sender's network may stand still for
longer than it takes a process of this machine to write on.
"""


def seconds_until_settled(store: ObjectStore, item: StoredObject, now: datetime) -> float:
    """Return how long to wait until an object counts as complete, unless it changes; 0 where it
    does.
    """
    # A clock that runs ahead elsewhere makes files that are young in the other direction.
    age_seconds = abs((now - item.modified_at).total_seconds())
    needed_seconds = store.settle_seconds
    if age_seconds < UNTOLD_SECONDS and store.is_being_written(item.key) is None:
        needed_seconds = max(needed_seconds, UNTOLD_SECONDS)
    return max(0.0, needed_seconds - age_seconds)
