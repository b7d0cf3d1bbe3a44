"""Rejected deliveries whose files stay in the inbox, for feeds with `after="leave"`.

    left/<feed>.rejected.json     the hash of the delivery, by file name

Such a file lands no rows even if it is read again (it was touched, an erasure rewrote it, or
the state of processed files was lost). It lands again only if it is delivered again: with
`--path`, or after the inbox had other content, or none, under its name.
"""

from collections.abc import Collection, Iterable, Mapping

from lakehouse.ingestion.ad_hoc_files import AdHocStore
from lakehouse.ingestion.inbox_state import read_inbox_state, write_inbox_state
from lakehouse.ingestion.staging import StagedFile
from lakehouse.storage.object_store import ObjectStore
from lakehouse.tables.feed import Feed


def note_rejected(feed: Feed, store: ObjectStore, source_file: str, sha256: str) -> None:
    """Record that a user rejects a delivery whose file is in the inbox; the caller holds the
    feed's lock.
    """
    key = _note(feed)
    write_inbox_state(store, key, {**read_inbox_state(store, key), source_file: sha256})


def read_rejected(feed: Feed, store: ObjectStore) -> Mapping[str, str]:
    """Return the hashes of rejected deliveries by file name; empty for files passed with
    `--path`.
    """
    if feed.after != "leave" or isinstance(store, AdHocStore):
        return {}
    return read_inbox_state(store, _note(feed))


def forget_rejected(
    feed: Feed,
    store: ObjectStore,
    landed: Iterable[StagedFile],
    present: Collection[str],
    *,
    is_named: bool,
) -> None:
    """Forget rejections whose file left the inbox, has new content that landed, or landed again
    with `--path`.

    :param present: the keys in the inbox.
    :param is_named: whether the landed files were passed with `--path`.
    """
    rejected = read_inbox_state(store, _note(feed))
    if not rejected:
        return
    kept = {name: sha256 for name, sha256 in rejected.items() if feed.inbox + name in present}
    for file in landed:
        if not is_named or kept.get(file.source_file) == file.sha256:
            kept.pop(file.source_file, None)
    if kept != rejected:
        write_inbox_state(store, _note(feed), kept)


def _note(feed: Feed) -> str:
    return f"left/{feed.name}.rejected.json"
