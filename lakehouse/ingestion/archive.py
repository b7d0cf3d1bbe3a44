"""Out of the inbox: a file goes where its content says, once, and only as what it was when it was read."""

import hashlib
from collections.abc import Callable

from lakehouse.errors import LakehouseError
from lakehouse.iceberg.foreign import shown
from lakehouse.ingestion.delivery import Archived, Delivery
from lakehouse.ingestion.left import leave
from lakehouse.ingestion.names import HASH_DIGITS, archive_key
from lakehouse.resources.object_store import ObjectStore, StoredObject

_BLOCK_BYTES = 1 << 20
_ALL_DIGITS = 64


def finish(delivery: Delivery, store: ObjectStore) -> Archived:
    """Archive the files of a delivery that bronze has, or delete or leave them, as the feed declares.

    It can be killed anywhere and done again: the next ingest finds the rest in the inbox, bronze leaves out what it
    has, and they are archived then. What was overwritten since it was read stays in the inbox.
    """
    feed, began_at = delivery.ingest.feed, delivery.ingest.began_at
    if feed.after == "leave":
        leave(feed, store, [file.stored for file in delivery.files])
        return Archived()
    keys, left = [], []
    for file in delivery.files:

        def key(digits: int, source_file: str = file.source_file, sha256: str = file.sha256) -> str:
            return archive_key(feed, source_file, sha256, began_at, digits)

        if feed.after == "delete":
            is_done = store.remove(file.stored)
        else:
            target = put_away(store, file.stored, file.sha256, key)
            is_done = target is not None
            keys += [target] if target else []
        if not is_done and store.exists(file.stored.key):
            left.append(file.stored.key)
    return Archived(tuple(keys), tuple(left))


def put_away(
    store: ObjectStore,
    seen: StoredObject,
    sha256: str,
    key: Callable[[int], str],
    before: Callable[[str], None] = lambda _: None,
) -> str | None:
    """Move a file to the key that its content gives it; where the same content is there already, only remove it.

    :param key: gives the key with a number of digits of the hash in it.
    :param before: called with the key ahead of the move.
    :return: the key; None where the file is no longer as it was seen, and stays.
    """
    for digits in (HASH_DIGITS, _ALL_DIGITS):
        target = key(digits)
        is_free = not store.exists(target)
        if is_free or sha256_of(store, target) == sha256:
            before(target)
            done = store.move(seen, target) if is_free else store.remove(seen)
            return target if done else None
    raise LakehouseError(
        f"{shown(store.uri(target))} does not hold the content that its name says (SHA-256 {sha256}).",
        next_step="Somebody changed it: move it away, and run this again.",
    )


def sha256_of(store: ObjectStore, key: str) -> str:
    """Return the hash of an object's content as delivered, in hex."""
    made = hashlib.sha256()
    with store.open(key) as raw:
        while block := raw.read(_BLOCK_BYTES):
            made.update(block)
    return made.hexdigest()
