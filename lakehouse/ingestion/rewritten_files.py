"""The ledger of delivered files that were rewritten without some rows: which content stands for
which delivery, and which of its rows are gone.

    privacy/rewritten/<feed>/<sha256>.json     one for each content, as delivered or rewritten

A delivery is known by the hash of its content as it was delivered first, in bronze and in the
names of files, whatever became of its content since. So either form that comes again is the same
delivery, and its rows keep their numbers. The ledger is written before a file is exchanged; what
is written twice is the same.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256 as hash_of
from threading import Lock
from typing import Any

from lakehouse.errors import LakehouseError
from lakehouse.ingestion.archive_names import HASH_DIGITS, hashed_name
from lakehouse.storage.object_store import ObjectStore
from lakehouse.tables.feed import Feed

NOTHING = hash_of(b"").hexdigest()
"""The hash of no bytes: what a file holds that was erased as a whole."""

_MOMENTS = ("at", "modified_at")
_EXCHANGE_TAKES = timedelta(minutes=5)
"""Noted, and then uploaded, by clocks that may differ."""


@dataclass(frozen=True)
class Change:
    """A content that took the place of another: what was left out, of which file, and why.

    `left_out` are the numbers of rows as delivered, 0 the header of a file that has none.
    `request` is None where a file was rewritten as it landed. `file` is the name of the file
    with the hash of the delivery in it, as in the archive; or the hash of that name, where it
    holds a value of the person.
    """

    old_sha256: str
    new_sha256: str
    left_out: tuple[int, ...]
    file: str
    request: str | None
    at: datetime
    modified_at: datetime
    """When the file was modified before: a bucket knows only when it was exchanged."""

    @property
    def is_of_whole_file(self) -> bool:
        """Whether nothing was left of the file."""
        return self.new_sha256 == NOTHING


@dataclass(frozen=True)
class KnownContent:
    """A content and the delivery that it is a form of, `sha256`: itself, where it came so.

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
        """The rows that requests left out, which never come back."""
        return _together(change for change in self.changes if change.request is not None)

    @property
    def is_erased(self) -> bool:
        """Whether the delivery was erased as a whole."""
        return any(change.is_of_whole_file for change in self.changes)

    def modified_at(self, modified_at: datetime) -> datetime:
        """Return when a file of the delivery was modified at its source: of one whose time is
        that of its rewriting, what it was before.
        """
        for change in self.changes:
            if abs(modified_at - change.at) < _EXCHANGE_TAKES:
                return min(modified_at, change.modified_at)
        return modified_at


@dataclass(frozen=True)
class _Entry:
    """What is noted of one content: how it was changed, and of which deliveries it is a form."""

    changes: tuple[Change, ...] = ()
    form_of: tuple[str, ...] = field(default=())


class RewrittenFiles:
    """The ledger of one feed, in its store.

    Which contents are known is listed once, and changed by this object alone: whoever changes
    it holds the feed.
    """

    def __init__(self, store: ObjectStore, feed: Feed) -> None:
        self._store = store
        self._feed = feed
        self._prefix = feed.rewritten
        self._writing = Lock()
        # Files are looked up by several threads, of which one lists.
        self._listing = Lock()
        self._listed: set[str] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no file of the feed was ever rewritten."""
        return not self._known

    def find(self, key: str, sha256: str) -> KnownContent:
        """Return which delivery a content is a form of, by its hash, and the key that it stands
        under.

        Two deliveries may differ in a person's rows alone, and be the same without them: the
        name tells them apart. A rewritten content under another name is a delivery of its own.
        """
        entry = self._read(sha256)
        for origin in entry.form_of:
            changes = self._read(origin).changes
            names = {change.file for change in changes}
            if names & _names(self._feed, key, origin):
                return KnownContent(origin, _missing(sha256, changes), changes)
        return KnownContent(sha256, changes=entry.changes)

    def record(self, known: KnownContent, change: Change) -> KnownContent:
        """Note that a content of a delivery takes the place of another, ahead of doing it."""
        # Files of one delivery are staged by several threads.
        with self._writing:
            entry = self._read(known.sha256)
            changes = entry.changes
            if not any(_is_same(change, noted) for noted in changes):
                changes = (*changes, change)
                # Ahead of the other one: that alone would name a content that nobody finds.
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
            return _entry(json.loads(text))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise LakehouseError(
                f"{self._store.uri(self._key(sha256))} is not what the lakehouse wrote there:"
                f" found {type(error).__name__}; expected its own JSON.",
                next_step="Put a copy of it back: without it, erased rows may come back.",
            ) from error

    def _write(self, sha256: str, entry: _Entry) -> None:
        content = asdict(entry)
        for change in content["changes"]:
            for name in _MOMENTS:
                change[name] = change[name].isoformat()
        self._store.write_text(self._key(sha256), json.dumps(content) + "\n")
        self._known.add(sha256)

    def _key(self, sha256: str) -> str:
        return f"{self._prefix}{sha256}.json"


def delivered_name(feed: Feed, key: str, sha256: str) -> str:
    """Return the name of a file with the hash of its delivery in it, as in the archive, wherever
    the file stands.
    """
    if key.startswith(feed.inbox):
        return hashed_name(feed, key.removeprefix(feed.inbox), sha256)
    if key.startswith(feed.archive):
        name = key.removeprefix(feed.archive).partition("/")[2]
    else:
        name = key.removeprefix(feed.rejected)
    return name.replace(sha256, sha256[:HASH_DIGITS])


def noted_name(name: str, is_personal: Callable[[str], bool]) -> str:
    """Return how the ledger calls a file whose name may hold a value of a person."""
    return _digest(name) if is_personal(name) else name


def _names(feed: Feed, key: str, sha256: str) -> set[str]:
    """Return what the ledger may call a file."""
    name = delivered_name(feed, key, sha256)
    return {name, _digest(name)}


def _digest(name: str) -> str:
    return hash_of(name.encode("utf-8", "surrogatepass")).hexdigest()


def _is_same(change: Change, other: Change) -> bool:
    return replace(change, at=other.at, modified_at=other.modified_at) == other


def _together(changes: Iterable[Change]) -> frozenset[int]:
    return frozenset[int]().union(*(change.left_out for change in changes))


def _missing(sha256: str, changes: Iterable[Change]) -> frozenset[int]:
    """Return the rows of a delivery that one form of it lacks."""
    missing: dict[str, frozenset[int]] = {}
    for change in changes:
        before = missing.get(change.old_sha256, frozenset())
        missing[change.new_sha256] = before.union(change.left_out)
    return missing.get(sha256, frozenset())


def _entry(content: Mapping[str, Any]) -> _Entry:
    changes = []
    for noted in content["changes"]:
        moments = {name: datetime.fromisoformat(noted[name]) for name in _MOMENTS}
        changes.append(Change(**{**noted, **moments, "left_out": tuple(noted["left_out"])}))
    return _Entry(tuple(changes), tuple(content["form_of"]))
