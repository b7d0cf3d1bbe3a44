"""Out of the inbox: a file goes where its content says, once, and only as what it was when it
was read.
"""

import hashlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import datetime

from lakehouse.errors import LakehouseError
from lakehouse.ingestion.archive_names import HASH_DIGITS, archive_key
from lakehouse.ingestion.delivery import Archived, Delivery
from lakehouse.ingestion.processed_files import record_processed
from lakehouse.ingestion.staging import StagedFile
from lakehouse.storage.object_store import ObjectStore, StoredObject
from lakehouse.tables.escaping import shown
from lakehouse.tables.feed import Feed

_BLOCK_BYTES = 1 << 20
_ALL_DIGITS = 64


def archive_files(delivery: Delivery, store: ObjectStore) -> Archived:
    """Archive the files of a delivery that bronze has, or delete or keep them, as the feed
    declares.

    It can be killed anywhere and done again: the next ingest finds the rest in the inbox,
    bronze leaves out what it has, and they are archived then. What was overwritten since it was
    read stays in the inbox.

    :raises LakehouseError: a file could not be archived, such as one whose name in the archive has
        another content, or, as it was collected, not be moved to the rejected ones; the other
        files are archived all the same.
    """
    feed, began_at = delivery.ingest.feed, delivery.ingest.began_at
    keys, changed, errors = [], [], list(delivery.not_moved)
    if feed.after == "leave":
        record_processed(feed, store, delivery.files, delivery.still_rejected)
    for file in delivery.files:
        with collecting_errors(errors, store, file.stored):
            target, is_done = _put_away(store, feed, file, began_at)
            keys += [target] if target else []
            if not is_done and store.exists(file.stored.key):
                changed.append(file.stored.key)
    if errors:
        raise errors[0]
    return Archived(tuple(keys), tuple(changed))


@contextmanager
def collecting_errors(
    errors: list[LakehouseError], store: ObjectStore, seen: StoredObject
) -> Iterator[None]:
    """Add to `errors` what keeps one file from being moved, so that those behind it go on."""
    try:
        yield
    except LakehouseError as error:
        errors.append(error)
    except store.refusals as error:
        told = LakehouseError(
            f"{shown(store.uri(seen.key))} was not moved: {error}; expected that it can be.",
            next_step="It stays there, and the next ingest moves it.",
        )
        told.__cause__ = error
        errors.append(told)


def _put_away(
    store: ObjectStore, feed: Feed, file: StagedFile, began_at: datetime
) -> tuple[str | None, bool]:
    """Return the key of a file in the archive, None where it is not put there, and whether it is
    as its feed declares.
    """
    if feed.after == "leave":
        return None, True
    if feed.after == "delete":
        return None, store.remove(file.stored)
    target = _archive(store, feed, file, began_at)
    return target, target is not None


def _archive(
    store: ObjectStore, feed: Feed, file: StagedFile, began_at: datetime
) -> str | None:
    def key(digits: int) -> str:
        return archive_key(feed, file.source_file, file.sha256, began_at, digits)

    return move_once(store, file.stored, file.forms, key)


def move_once(
    store: ObjectStore,
    seen: StoredObject,
    forms: Collection[str],
    key: Callable[[int], str],
    before: Callable[[str], None] = lambda _: None,
) -> str | None:
    """Move a file to the key that its content gives it; where the same content is there
    already, only remove it.

    :param forms: the hashes of what is the same content: as delivered, and rewritten since.
    :param key: gives the key with a number of digits of the hash in it.
    :param before: called with the key ahead of the move.
    :return: the key; None where the file is no longer as it was seen, and stays.
    """
    for digits in (HASH_DIGITS, _ALL_DIGITS):
        target = key(digits)
        if not store.exists(target):
            before(target)
            try:
                return target if store.move(seen, target) else None
            except FileExistsError:
                # Another host moves the same file, and was a moment sooner.
                if not store.exists(target):
                    raise
        if sha256_of(store, target) in forms:
            before(target)
            is_gone = store.remove(seen) or not store.exists(seen.key)
            return target if is_gone else None
    raise LakehouseError(
        f"{shown(store.uri(target))} does not hold the content that its name says (SHA-256"
        f" {' or '.join(sorted(forms))}).",
        next_step="Somebody changed it: move it away, and run this again.",
    )


def sha256_of(store: ObjectStore, key: str) -> str:
    """Return the hash of an object's content as delivered, in hex."""
    digest = hashlib.sha256()
    with store.open(key) as raw:
        while block := raw.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()
