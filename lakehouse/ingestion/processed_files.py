"""Files that stay in the inbox after bronze has them, for feeds that say so.

A note tells them from what arrives. It only spares work: without it they are read again, and
bronze leaves them out.
"""

import json
from collections.abc import Sequence

from lakehouse.storage.object_store import ObjectStore, StoredObject
from lakehouse.tables.feed import Feed


def arrived(feed: Feed, store: ObjectStore) -> list[StoredObject]:
    """Return what is in the inbox and was not left there, by (modified time, key)."""
    found = store.objects(feed.inbox)
    left = _left(feed, store) if feed.after == "leave" else {}
    return [item for item in found if left.get(item.key) != item.version]


def leave(feed: Feed, store: ObjectStore, files: Sequence[StoredObject]) -> None:
    """Note that bronze has these files; what is gone from the inbox is forgotten."""
    there = {item.key for item in store.objects(feed.inbox)}
    noted = _left(feed, store) | {file.key: file.version for file in files}
    text = json.dumps(
        {key: version for key, version in sorted(noted.items()) if key in there}, indent=1
    )
    store.write_text(_note(feed), text)


def _left(feed: Feed, store: ObjectStore) -> dict[str, str]:
    try:
        with store.open(_note(feed)) as note:
            noted: dict[str, str] = json.loads(note.read())
            return noted
    except FileNotFoundError:
        return {}


def _note(feed: Feed) -> str:
    return f"left/{feed.name}.json"
