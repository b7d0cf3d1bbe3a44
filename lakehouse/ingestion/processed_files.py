"""Files that stay in the inbox after bronze has them, for feeds that say so.

A note tells them from what arrives. Without it they are read again, and bronze leaves out those
that it has: what a person rejected would land again.
"""

import json
from collections.abc import Sequence

from lakehouse.storage.object_store import ObjectStore, StoredObject
from lakehouse.tables.feed import Feed


def list_unprocessed(feed: Feed, store: ObjectStore) -> list[StoredObject]:
    """Return what is in the inbox and was not processed, by (modified time, key)."""
    processed = _read_processed(feed, store) if feed.after == "leave" else {}
    return [
        item for item in store.objects(feed.inbox) if processed.get(item.key) != item.version
    ]


def record_processed(feed: Feed, store: ObjectStore, files: Sequence[StoredObject]) -> None:
    """Note that bronze has these files; what is gone from the inbox is forgotten."""
    processed = _read_processed(feed, store) | {file.key: file.version for file in files}
    present = {item.key for item in store.objects(feed.inbox)}
    kept = {key: version for key, version in processed.items() if key in present}
    store.write_text(_note(feed), json.dumps(kept, indent=1, sort_keys=True))


def _read_processed(feed: Feed, store: ObjectStore) -> dict[str, str]:
    try:
        with store.open(_note(feed)) as note:
            noted: dict[str, str] = json.loads(note.read())
            return noted
    except FileNotFoundError:
        return {}


def _note(feed: Feed) -> str:
    # Homes of all versions have it there.
    return f"left/{feed.name}.json"
