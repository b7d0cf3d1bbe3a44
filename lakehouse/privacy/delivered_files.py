"""People's rows out of delivered files, wherever they stand: inbox, archive, rejected files with
their reasons, copies of files that a person named, and what killed processes left.

A file keeps its name and place, and all bytes but those of the rows. The hash in its name is that
of the content as it was delivered; the ledger (`ingestion.rewritten_files`) knows both. A file
without a row of theirs is not touched.
"""

import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path

from lakehouse.errors import LakehouseError
from lakehouse.ingestion.found_rows import FoundRows, Open, find_rows
from lakehouse.ingestion.ingest import lock_feed
from lakehouse.ingestion.rewrite_file import Rewriting, look_into
from lakehouse.ingestion.rewritten_files import (
    NOTHING,
    KnownContent,
    RewrittenFiles,
    delivered_name,
    ledger_name,
)
from lakehouse.ingestion.row_numbers import RowNumbers
from lakehouse.privacy.erasure_record import UnreadableFile
from lakehouse.privacy.person_rows import PersonRows, PersonText
from lakehouse.storage.object_store import LocalObjectStore, ObjectStore, StoredObject
from lakehouse.storage.rejected_files import REASON_ENDING
from lakehouse.storage.settling import seconds_until_settled
from lakehouse.tables.feed import Feed
from lakehouse.tables.person import Person

_OWN_UNFINISHED = re.compile(r"/\.[^/]*\.tmp$")
_COPIES = ".ad-hoc-*"
_CAN_BE_READ = (
    "it can be read, so that rows are taken out of it by the columns that its feed declares to be"
    " of people, and it is not emptied"
)
_WAS_CHANGED = "it was changed as it was read"
_IS_UNFINISHED = "it is hidden or half-written; remove it yourself, or finish it"


@dataclass(frozen=True, order=True)
class RewrittenFile:
    """A file that a request took rows from; `sha256` is the hash that it was delivered with.

    `key` has `[erased]` for a value of a person. `rows` are their numbers as bronze counts.
    """

    key: str
    sha256: str
    old_sha256: str
    new_sha256: str
    rows: tuple[int, ...]


@dataclass(frozen=True)
class FilesRewritten:
    """What a request took from the files of a feed, in this call and in those before that were
    killed.

    `reasons` are the keys of the reasons that a value was taken out of now. `removed` are, now
    too, what a killed process left half-written and nobody can use, and the versions with the
    people, or with what nobody can read, that a bucket kept of what was overwritten or removed.
    """

    files: tuple[RewrittenFile, ...] = ()
    unreadable: tuple[UnreadableFile, ...] = ()
    reasons: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    named: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Of the files that were to be emptied, those that are there, as they were named: why each
    was not, "" where it is empty.
    """

    @property
    def rows(self) -> int:
        """How many rows were taken out, of each copy of a file."""
        return sum(len(file.rows) for file in self.files)


def find_in_files(
    store: ObjectStore, feed: Feed, persons: Sequence[Person], *, home: Path
) -> dict[str, int]:
    """Return how many rows of some people each file has, by key; nothing is changed.

    A key has `[erased]` for a value of theirs. A file that may have more of them than can be
    told is among them, with the rows that can.
    """
    erasure = _Erasure(store, feed, persons, "", home)
    rows = {}
    for place, prefix in erasure.places:
        for item in _files(place, feed, prefix):
            found = erasure.look(place, item)
            if found and (found.positions or found.problem):
                rows[erasure.shown(place, item.key)] = len(found.positions)
    return rows


def rewrite_files(
    store: ObjectStore,
    feed: Feed,
    persons: Sequence[Person],
    request: str,
    *,
    home: Path,
    erase_whole: Collection[str] = (),
) -> FilesRewritten:
    """Rewrite the delivered files of a feed without the rows of some people.

    It holds the feed. Killed anywhere, it is called again and ends in the same state, with the
    same result.

    :param persons: their `subject` is called as the column of the feed.
    :param request: the request's name, which the ledger keeps.
    :param erase_whole: keys or hashes of files that are emptied where they are among the
        unreadable ones.
    :raises TableBusy: when an ingest of the feed goes on for longer than an hour.
    """
    with lock_feed(feed, home) as ingest:
        erasure = _Erasure(store, feed, persons, request, home, frozenset(erase_whole))
        return erasure.run(ingest.staging)


def add_reasons(reasons: dict[str, str], more: Mapping[str, str]) -> None:
    """Add why files that were named were not emptied. Of two of one name or content, one that was
    not counts.
    """
    for name, why in more.items():
        reasons[name] = reasons.get(name) or why


@dataclass
class _Erasure:
    store: ObjectStore
    feed: Feed
    persons: Sequence[Person]
    request: str
    home: Path
    erase_whole: frozenset[str] = frozenset()
    files: list[RewrittenFile] = field(default_factory=list)
    unreadable: list[UnreadableFile] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    named: dict[str, str] = field(default_factory=dict)

    def run(self, folder: Path) -> FilesRewritten:
        for store, prefix in self.places:
            self._end_unfinished(store, prefix)
            for item in store.objects(prefix) if prefix == self.feed.rejected else ():
                if item.key.endswith(REASON_ENDING):
                    self._erase_reason(item)
            for item in _files(store, self.feed, prefix):
                self._rewrite(self._rewriting(store, folder), item)
            self._remove_old(store, prefix)
            self._name_unfinished(store, prefix)
            for entry in store.passed_over(prefix):
                self._note(store, entry.key, f"it is {entry.kind}")
        return self._result()

    def _result(self) -> FilesRewritten:
        return FilesRewritten(
            tuple(sorted(self.files)),
            tuple(sorted(self.unreadable)),
            tuple(self.reasons),
            tuple(self.removed),
            self.named,
        )

    def _name_unfinished(self, store: ObjectStore, prefix: str) -> None:
        for item in store.unfinished(prefix):
            if item.key in self.erase_whole:
                self.named[item.key] = _IS_UNFINISHED

    @cached_property
    def places(self) -> list[tuple[ObjectStore, str]]:
        """Where files of the feed stand: each store, and a prefix in it."""
        own = [self.feed.inbox, self.feed.archive, self.feed.rejected]
        places = [(self.store, prefix) for prefix in own]
        for copies in sorted(self.home.glob(_COPIES)):
            # Of a process that ingests what a person named, or was killed as it did.
            places.append((LocalObjectStore(copies), self.feed.inbox))
        return places

    def look(self, store: ObjectStore, item: StoredObject) -> FoundRows | None:
        """Return what is in a file; None where it went away."""
        return self._look(item, partial(store.open, item.key))

    def _look(self, item: StoredObject, open_file: Open) -> FoundRows | None:
        try:
            return find_rows(self.feed, item.key, open_file, self._rows, self._text)
        except FileNotFoundError:
            return None

    def shown(self, store: ObjectStore, key: str) -> str:
        """Return the key of a file without a value of the people."""
        full = key if store is self.store else store.uri(key)
        return self._text.erased(full)

    def _rewrite(self, rewriting: Rewriting, item: StoredObject) -> None:
        store = rewriting.store
        found = self.look(store, item)
        if found is None:
            return
        known = rewriting.ledger.find(item.key, found.sha256)
        named = self.erase_whole & {item.key, found.sha256, known.sha256}
        try:
            is_done = self._exchange(rewriting, item, found, known, bool(named)) is not None
            problem = found.problem if is_done else _WAS_CHANGED
        except LakehouseError as error:
            is_done, problem = False, str(error)
        known = rewriting.ledger.find(item.key, found.sha256)
        if is_done:
            self._collect(store, item.key, known)
        is_empty = is_done and (known.is_erased or found.sha256 == NOTHING)
        why = "" if is_empty else _CAN_BE_READ if is_done else problem
        add_reasons(self.named, dict.fromkeys(named, why))
        if problem and not (is_done and known.is_erased):
            self._note(store, item.key, problem)
        if self._text.is_in_name(item.key):
            self._note(store, item.key, "its name holds a value of theirs")

    def _exchange(
        self,
        rewriting: Rewriting,
        item: StoredObject,
        found: FoundRows,
        known: KnownContent,
        is_named: bool,
    ) -> StoredObject | None:
        """Do to a file what it needs, and return it as it is then; None where it changed."""
        is_to_go = known.is_erased or (is_named and bool(found.problem))
        if is_to_go and found.sha256 != NOTHING:
            return rewriting.leave_nothing(item, found.sha256, known)
        numbers = RowNumbers.without(known.missing)
        rows = {numbers.number(position) for position in found.positions}
        if not rows:
            return item
        _wait_until_settled(rewriting.store, item)
        return rewriting.leave_out(item, found, known, rows)

    def _collect(self, store: ObjectStore, key: str, known: KnownContent) -> None:
        """Add what the request ever took from a file."""
        name = self._noted(delivered_name(self.feed, key, known.sha256))
        for change in known.changes:
            if (change.request, change.file) == (self.request, name):
                self.files.append(
                    RewrittenFile(
                        self.shown(store, key),
                        known.sha256,
                        change.old_sha256,
                        change.new_sha256,
                        change.left_out,
                    )
                )

    def _end_unfinished(self, store: ObjectStore, prefix: str) -> None:
        """Remove what this store itself left half-written, and note what others did where it
        may hold the people.
        """
        if prefix != self.feed.inbox:
            for key in store.discard_uploads(prefix):
                self.removed.append(f"{self.shown(store, key)} (a part of it)")
        for item in store.unfinished(prefix):
            # In the inbox another may write.
            is_own = _OWN_UNFINISHED.search(item.key) and prefix != self.feed.inbox
            found = None if is_own else self.look(store, item)
            if is_own and store.remove(item):
                self.removed.append(self.shown(store, item.key))
            elif found and (found.positions or found.problem):
                why = "it is hidden or half-written, and may hold a row of theirs"
                self._note(store, item.key, why)

    def _remove_old(self, store: ObjectStore, prefix: str) -> None:
        """Remove the old versions that hold the people, or of which nobody can say."""
        for old in store.old_versions(prefix):
            found = self._look(old, partial(store.open_old, old))
            if found and (found.positions or found.problem):
                store.remove_old(old)
                self.removed.append(f"{self.shown(store, old.key)} (an old version)")

    def _erase_reason(self, item: StoredObject) -> None:
        """Take the values out of a reason, which has none by design."""
        with self.store.open(item.key) as file:
            text = file.read().decode("utf-8", "replace")
        erased = self._text.erased(text)
        if erased != text:
            self.store.write_text(item.key, erased)
            self.reasons.append(self.shown(self.store, item.key))

    def _note(self, store: ObjectStore, key: str, why: str) -> None:
        self.unreadable.append(UnreadableFile(self.shown(store, key), why))

    def _rewriting(self, store: ObjectStore, folder: Path) -> Rewriting:
        look = look_into(self.feed, self._rows, self._text)
        return Rewriting(
            store, self.feed, self._ledger, folder, look, self.request, self._noted
        )

    def _noted(self, name: str) -> str:
        return ledger_name(name, self._text.is_in_name)

    @cached_property
    def _ledger(self) -> RewrittenFiles:
        return RewrittenFiles(self.store, self.feed)

    @cached_property
    def _rows(self) -> PersonRows:
        return PersonRows(self.persons)

    @cached_property
    def _text(self) -> PersonText:
        return PersonText(self.persons)


def _wait_until_settled(store: ObjectStore, item: StoredObject) -> None:
    """Wait until a file would count as complete: what is written to it until then is seen."""
    time.sleep(seconds_until_settled(store, item, datetime.now(UTC)))


def _files(store: ObjectStore, feed: Feed, prefix: str) -> Iterator[StoredObject]:
    """Yield the files below a prefix, without the reasons of rejected ones."""
    for item in store.objects(prefix):
        if not (prefix == feed.rejected and item.key.endswith(REASON_ENDING)):
            yield item
