"""Deliveries that a person rejected and whose file its feed leaves in the inbox.

    left/<feed>.rejected.json     the hash of the delivery, by the name of its file

Whatever makes such a file be read again (somebody touches it, an erasure rewrites it, the note of
what was processed is lost), it lands no row. It does where it is delivered anew: a person names
it, or the inbox had another content under its name since, or none.
"""

from collections.abc import Collection, Iterable, Mapping

from lakehouse.ingestion.ad_hoc_files import AdHocStore
from lakehouse.ingestion.left_notes import read_left, write_left
from lakehouse.ingestion.staging import StagedFile
from lakehouse.storage.object_store import ObjectStore
from lakehouse.tables.feed import Feed


def note_rejected(feed: Feed, store: ObjectStore, source_file: str, sha256: str) -> None:
    """Note that the file in the inbox is a delivery that a person rejects; whoever does it holds
    the feed.
    """
    key = _note(feed)
    write_left(store, key, {**read_left(store, key), source_file: sha256})


def read_rejected(feed: Feed, store: ObjectStore) -> Mapping[str, str]:
    """Return the deliveries that land no row though their files are in the inbox, as hashes by
    name; none where a person named the files that are collected.
    """
    if feed.after != "leave" or isinstance(store, AdHocStore):
        return {}
    return read_left(store, _note(feed))


def forget_rejected(
    feed: Feed,
    store: ObjectStore,
    landed: Iterable[StagedFile],
    present: Collection[str],
    *,
    is_named: bool,
) -> None:
    """Forget those whose file is gone from the inbox, or has another content that landed, and
    those that landed since a person named them.

    :param present: the keys in the inbox.
    :param is_named: whether a person named the files that landed.
    """
    rejected = read_left(store, _note(feed))
    if not rejected:
        return
    kept = {name: sha256 for name, sha256 in rejected.items() if feed.inbox + name in present}
    for file in landed:
        if not is_named or kept.get(file.source_file) == file.sha256:
            kept.pop(file.source_file, None)
    if kept != rejected:
        write_left(store, _note(feed), kept)


def _note(feed: Feed) -> str:
    return f"left/{feed.name}.rejected.json"
