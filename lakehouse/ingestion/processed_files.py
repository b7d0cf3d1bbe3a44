"""Processed files that stay in the inbox, for feeds with `after="leave"`.

A state file separates them from new files. If it is lost, the files are read again and bronze
skips those that it has.
"""

import json
from collections.abc import Sequence

from lakehouse.ingestion.ad_hoc_files import AdHocStore
from lakehouse.ingestion.staging.staged_files import StagedFile
from lakehouse.storage.object_store import ObjectStore, StoredObject
from lakehouse.tables.feed import Feed


def list_unprocessed(feed: Feed, store: ObjectStore) -> list[StoredObject]:
    """List unprocessed files in the inbox, by (modified time, key)."""
    processed = _read(feed, store) if feed.after == "leave" else {}
    return [
        item for item in store.objects(feed.inbox) if processed.get(item.key) != item.version
    ]


def record_processed(feed: Feed, store: ObjectStore, landed: Sequence[StagedFile]) -> None:
    """Record landed files, and forget files that are no longer in the inbox."""
    if isinstance(store, AdHocStore):
        # The copies are not in the inbox and are deleted with their run.
        return
    processed = _read(feed, store) | {file.stored.key: file.stored.version for file in landed}
    present = {item.key for item in store.objects(feed.inbox)}
    kept = {key: version for key, version in processed.items() if key in present}
    store.write_text(_processed_key(feed), json.dumps(kept, indent=1, sort_keys=True))


def _read(feed: Feed, store: ObjectStore) -> dict[str, str]:
    try:
        with store.open(_processed_key(feed)) as note:
            versions: dict[str, str] = json.loads(note.read())
            return versions
    except FileNotFoundError:
        return {}


def _processed_key(feed: Feed) -> str:
    # All versions use this path.
    return f"left/{feed.name}.json"
