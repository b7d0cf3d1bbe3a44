"""The ledger of rewritten files: which content belongs to which delivery, and which rows it
lacks.

    privacy/rewritten/<feed>/<sha256>.json     one per content, as delivered or rewritten

A delivery is identified by the hash of its original content, in bronze and in file names. If
the original or a rewritten content arrives again, it is the same delivery and its rows keep
their numbers. The ledger is written before a file is exchanged; writing is idempotent.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256 as hash_of
from threading import Lock

from lakehouse.errors import LakehouseError
from lakehouse.ingestion.archive_names import HASH_DIGITS, hashed_name
from lakehouse.storage.json_files import type_adapter
from lakehouse.storage.object_store import ObjectStore
from lakehouse.tables.feed import Feed

NOTHING = hash_of(b"").hexdigest()
"""The hash of empty content: what remains of a fully erased file."""

_EXCHANGE_TAKES = timedelta(minutes=5)
"""Maximum delay between the ledger entry and the upload, including clock differences."""


@dataclass(frozen=True)
class Change:
    """A replacement of one content by another: which rows were left out, of which file, and
    why.

    `left_out` are row numbers as delivered; 0 is the header. `request` is None if a file was
    rewritten as it landed. `file` is the archive name with the hash of the delivery, or the
    hash of that name if it contains personal data.
    """

    old_sha256: str
    new_sha256: str
    left_out: tuple[int, ...]
    file: str
    request: str | None
    at: datetime
    modified_at: datetime
    """When the file was modified before the exchange; a bucket only knows the time of the
    exchange.
    """

    @property
    def erases_file(self) -> bool:
        return self.new_sha256 == NOTHING


@dataclass(frozen=True)
class KnownContent:
    """A content and the delivery `sha256` that it belongs to.

    `missing` are the rows of the delivery that this content lacks.
    """

    sha256: str
    missing: frozenset[int] = frozenset()
    changes: tuple[Change, ...] = ()

    @property
    def forms(self) -> frozenset[str]:
        """The hashes of all contents that the delivery ever had."""
        return frozenset({self.sha256, *(change.new_sha256 for change in self.changes)})

    @property
    def erased(self) -> frozenset[int]:
        """The rows that erasure requests removed permanently."""
        requested = (change.left_out for change in self.changes if change.request is not None)
        return frozenset[int]().union(*requested)

    @property
    def is_erased(self) -> bool:
        return any(change.erases_file for change in self.changes)

    def modified_at(self, modified_at: datetime) -> datetime:
        """Return when a file was modified at its source; for a rewritten file, before the
        rewrite.
        """
        for change in self.changes:
            if abs(modified_at - change.at) < _EXCHANGE_TAKES:
                return min(modified_at, change.modified_at)
        return modified_at


@dataclass(frozen=True)
class _Entry:
    """The ledger entry of one content: its changes, and the deliveries that it belongs to."""

    changes: tuple[Change, ...] = ()
    form_of: tuple[str, ...] = ()


class RewrittenFiles:
    """The ledger of one feed, in its store.

    The known contents are listed once and changed only by this object: the caller holds the
    feed's lock.
    """

    def __init__(self, store: ObjectStore, feed: Feed) -> None:
        self._store = store
        self._feed = feed
        self._prefix = feed.rewritten
        self._writing = Lock()
        # Several threads look up files; one of them lists.
        self._listing = Lock()
        self._listed: set[str] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no file of the feed was ever rewritten."""
        return not self._known

    def find(self, key: str, sha256: str) -> KnownContent:
        """Return the delivery that a content belongs to, by its hash and key.

        Two deliveries may differ only in rows of one data subject and be equal without them;
        the file name distinguishes them. Rewritten content under another name is a new
        delivery.
        """
        entry = self._read(sha256)
        for origin in entry.form_of:
            changes = self._read(origin).changes
            names = {change.file for change in changes}
            if names & _names(self._feed, key, origin):
                return KnownContent(origin, _missing(sha256, changes), changes)
        return KnownContent(sha256, changes=entry.changes)

    def record(self, known: KnownContent, change: Change) -> KnownContent:
        """Record that a content of a delivery replaces another, before the exchange."""
        # Several threads stage files of one delivery.
        with self._writing:
            entry = self._read(known.sha256)
            changes = entry.changes
            if not any(_is_same(change, recorded) for recorded in changes):
                changes = (*changes, change)
                # Written first: otherwise a kill leaves a content without its delivery.
                self._record_form(change.new_sha256, known.sha256)
                self._write(known.sha256, replace(entry, changes=changes))
        return replace(known, changes=changes)

    def _record_form(self, sha256: str, origin: str) -> None:
        if sha256 == origin:
            return
        entry = self._read(sha256)
        if origin not in entry.form_of:
            self._write(sha256, replace(entry, form_of=(*entry.form_of, origin)))

    @property
    def _known(self) -> set[str]:
        with self._listing:
            if self._listed is None:
                keys = [item.key for item in self._store.objects(self._prefix)]
                names = (key.removeprefix(self._prefix) for key in keys)
                self._listed = {name.removesuffix(".json") for name in names}
            return self._listed

    def _read(self, sha256: str) -> _Entry:
        if sha256 not in self._known:
            return _Entry()
        with self._store.open(self._key(sha256)) as file:
            text = file.read()
        try:
            entry: _Entry = type_adapter(_Entry).validate_json(text)
        except ValueError as error:
            raise LakehouseError(
                f"{self._store.uri(self._key(sha256))} is not what the lakehouse wrote there:"
                f" found {type(error).__name__}; expected its own JSON.",
                next_step="Put a copy of it back: without it, erased rows may come back.",
            ) from error
        return entry

    def _write(self, sha256: str, entry: _Entry) -> None:
        text = type_adapter(_Entry).dump_json(entry).decode()
        self._store.write_text(self._key(sha256), f"{text}\n")
        self._known.add(sha256)

    def _key(self, sha256: str) -> str:
        return f"{self._prefix}{sha256}.json"


def delivered_name(feed: Feed, key: str, sha256: str) -> str:
    """Return the archive-style name of a file with the hash of its delivery, in any folder."""
    if key.startswith(feed.inbox):
        return hashed_name(feed, key.removeprefix(feed.inbox), sha256)
    if key.startswith(feed.archive):
        name = key.removeprefix(feed.archive).partition("/")[2]
    else:
        name = key.removeprefix(feed.rejected)
    return name.replace(sha256, sha256[:HASH_DIGITS])


def ledger_name(name: str, is_personal: Callable[[str], bool]) -> str:
    """Return the ledger's name for a file whose name may contain personal data."""
    return _digest(name) if is_personal(name) else name


def _names(feed: Feed, key: str, sha256: str) -> set[str]:
    """Return all names that the ledger may use for a file."""
    name = delivered_name(feed, key, sha256)
    return {name, _digest(name)}


def _digest(name: str) -> str:
    return hash_of(name.encode("utf-8", "surrogatepass")).hexdigest()


def _is_same(change: Change, other: Change) -> bool:
    return replace(change, at=other.at, modified_at=other.modified_at) == other


def _missing(sha256: str, changes: Iterable[Change]) -> frozenset[int]:
    missing: dict[str, frozenset[int]] = {}
    for change in changes:
        before = missing.get(change.old_sha256, frozenset())
        missing[change.new_sha256] = before.union(change.left_out)
    return missing.get(sha256, frozenset())
