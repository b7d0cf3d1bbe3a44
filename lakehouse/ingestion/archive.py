"""Move files out of the inbox: once, under a content hash, and only if unchanged since reading."""

import hashlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from lakehouse.errors import LakehouseError
from lakehouse.ingestion.archive_names import HASH_DIGITS, archive_key, rejected_key
from lakehouse.ingestion.collected_files import Delivery
from lakehouse.ingestion.processed_files import record_processed
from lakehouse.storage.object_store import ObjectStore, StoredObject
from lakehouse.storage.rejected_files import RejectedFile, reason_key
from lakehouse.tables.feed import Feed
from lakehouse.tables.quoting import shown

_BLOCK_BYTES = 1 << 20
_ALL_DIGITS = 64


def archive_files(delivery: Delivery, store: ObjectStore) -> tuple[str, ...]:
    """Archive, delete or leave the landed files of a delivery, as the feed declares. Return the
    archive keys.

    The operation is idempotent. After a kill, the next ingest finds the remaining files in the
    inbox, skips their rows in bronze and archives them. A file overwritten since it was read
    stays in the inbox.

    :raises LakehouseError: a file could not be archived (for example, its archive name has
        different content) or could not be moved to the rejected files. The other files are
        still archived.
    """
    feed, started_at = delivery.ingest.feed, delivery.ingest.started_at
    keys, errors = [], list(delivery.not_moved)
    if feed.after == "leave":
        record_processed(feed, store, delivery.files)
    for file in delivery.files:
        with collecting_errors(errors, store, file.stored):
            if feed.after == "delete":
                store.remove(file.stored)
            elif feed.after == "archive":
                key = partial(archive_key, feed, file.source_file, file.sha256, started_at)
                target = move_once(store, file.stored, file.forms, key)
                keys += [target] if target else []
    if errors:
        raise errors[0]
    return tuple(keys)


@contextmanager
def collecting_errors(
    errors: list[LakehouseError], store: ObjectStore, seen: StoredObject
) -> Iterator[None]:
    """Append the error of one file to `errors`, so that the remaining files are processed."""
    try:
        yield
    except LakehouseError as error:
        errors.append(error)
    except store.object_errors as error:
        failure = LakehouseError(
            f"{shown(store.uri(seen.key))} was not moved: {error}; expected to move it.",
            next_step="It stays there, and the next ingest moves it.",
        )
        failure.__cause__ = error
        errors.append(failure)


def move_to_rejected(
    store: ObjectStore,
    feed: Feed,
    item: StoredObject,
    forms: Collection[str],
    file: RejectedFile,
) -> RejectedFile | None:
    """Move a file to the rejected files, writing its reason first; None if it changed."""

    def explain(target: str) -> None:
        store.write_text(reason_key(target), file.reason_json)

    key = partial(rejected_key, feed, file.source_file, file.sha256)
    target = move_once(store, item, forms, key, before=explain)
    return replace(file, key=target) if target else None


def move_once(
    store: ObjectStore,
    seen: StoredObject,
    forms: Collection[str],
    key: Callable[[int], str],
    before: Callable[[str], None] = lambda _: None,
) -> str | None:
    """Move a file to its content-addressed key. If the same content is there, only remove the
    source.

    :param forms: hashes of the same delivery: as delivered, and as rewritten.
    :param key: returns the key for a number of hash digits.
    :param before: called with the key before the move.
    :return: the key, or None if the file changed and stays.
    """
    for digits in (HASH_DIGITS, _ALL_DIGITS):
        target = key(digits)
        if not store.exists(target):
            before(target)
            try:
                return target if store.move(seen, target) else None
            except FileExistsError:
                # Another host moved the same file first.
                if not store.exists(target):
                    raise
        if sha256_of(store, target) in forms:
            before(target)
            is_removed = store.remove(seen) or not store.exists(seen.key)
            return target if is_removed else None
    raise LakehouseError(
        f"{shown(store.uri(target))} does not have the content hash in its name (SHA-256"
        f" {' or '.join(sorted(forms))}).",
        next_step="Another process changed it: move it away, and run this again.",
    )


def sha256_of(store: ObjectStore, key: str) -> str:
    """Return the SHA-256 of an object's content, in hex."""
    digest = hashlib.sha256()
    with store.open(key) as raw:
        while block := raw.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()
