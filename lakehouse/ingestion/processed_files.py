"""Processed files that stay in the inbox, for feeds with `after="leave"`.

A state file separates them from new files. If it is lost, the files are read again and bronze
skips those that it has.
"""

from collections.abc import Sequence

from lakehouse.ingestion.ad_hoc_files import AdHocStore
from lakehouse.ingestion.inbox_state import read_inbox_state, write_inbox_state
from lakehouse.ingestion.rejected_in_inbox import forget_rejected
from lakehouse.ingestion.staging import StagedFile
from lakehouse.storage.object_store import ObjectStore, StoredObject
from lakehouse.tables.feed import Feed


def list_unprocessed(feed: Feed, store: ObjectStore) -> list[StoredObject]:
    """List unprocessed files in the inbox, by (modified time, key)."""
    processed = read_inbox_state(store, _note(feed)) if feed.after == "leave" else {}
    return [
        item for item in store.objects(feed.inbox) if processed.get(item.key) != item.version
    ]


def record_processed(
    feed: Feed,
    store: ObjectStore,
    landed: Sequence[StagedFile],
    still_rejected: Sequence[StagedFile] = (),
) -> None:
    """Record files as landed or still rejected, and forget files that are no longer in the
    inbox.

    Copies made for `--path` are not in the inbox and are deleted with their run.
    """
    is_named = isinstance(store, AdHocStore)
    own = store.base if isinstance(store, AdHocStore) else store
    handled = () if is_named else (*landed, *still_rejected)
    processed = read_inbox_state(own, _note(feed))
    processed |= {file.stored.key: file.stored.version for file in handled}
    present = {item.key for item in own.objects(feed.inbox)}
    kept = {key: version for key, version in processed.items() if key in present}
    write_inbox_state(own, _note(feed), kept)
    forget_rejected(feed, own, landed, present, is_named=is_named)


def _note(feed: Feed) -> str:
    # All versions use this path.
    return f"left/{feed.name}.json"
