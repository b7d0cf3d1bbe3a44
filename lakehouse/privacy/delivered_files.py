"""Erases people's rows from delivered files: inbox, archive, rejected files, and copies of files
that a caller named. The reasons of rejected files contain no values by design.

A file keeps its name and place, and all other bytes. The hash in its name is that of the delivered
content; the ledger (`ingestion.rewritten_files`) knows both. Other files are not changed.
"""

import re
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse.errors import LakehouseError
from lakehouse.iceberg.erasure.arrow_ids import (
    all_of,
    any_of,
    is_blank,
    match_ids,
    match_values,
)
from lakehouse.ingestion.feed_lock import lock_feed
from lakehouse.ingestion.found_rows import FoundRows, Open, find_rows
from lakehouse.ingestion.rewrite_file import Rewriting, RowNumbers, look_into
from lakehouse.ingestion.rewritten_files import (
    NOTHING,
    KnownContent,
    RewrittenFiles,
    delivered_name,
    ledger_name,
)
from lakehouse.privacy.erasure_record import ErasedFile, UnreadableFile
from lakehouse.privacy.places.scrubbed_place import ERASED
from lakehouse.privacy.verifier.values import ByteSearch, SearchedValues
from lakehouse.storage.local_store import LocalObjectStore
from lakehouse.storage.object_store import ObjectStore, StoredObject
from lakehouse.storage.rejected_files import REASON_ENDING
from lakehouse.storage.unfinished_files import seconds_until_settled
from lakehouse.tables.feed import Feed
from lakehouse.tables.person import Person, folded, is_distinctive, normal_id

if TYPE_CHECKING:
    import pyarrow as pa

_OWN_UNFINISHED = re.compile(r"/\.[^/]*\.tmp$")
_COPIES = ".ad-hoc-*"
_WAS_CHANGED = "it was changed while it was read"


@dataclass(frozen=True)
class FilesRewritten:
    """The files of a feed that a request rewrote, in this and earlier calls."""

    files: tuple[ErasedFile, ...] = ()
    unreadable: tuple[UnreadableFile, ...] = ()
    emptied: frozenset[str] = field(default=frozenset(), compare=False)
    """The keys and hashes of `erase_whole` whose file is empty."""


@dataclass(frozen=True)
class PersonRows:
    """Finds the rows of some people by the columns of a feed.

    A row belongs to a person if the id column contains the person's id. If the file has no such
    column, or the row no id, a personal value identifies it.
    """

    persons: Sequence[Person]

    @cached_property
    def columns(self) -> frozenset[str]:
        """The id and personal columns."""
        return frozenset({*self._ids, *self._personal})

    def of_batch(self, batch: "pa.RecordBatch") -> Sequence[int]:
        """Return the sorted positions of matching rows in a batch."""
        import pyarrow as pa
        import pyarrow.compute as pc

        nothing = pa.repeat(pa.scalar(False), batch.num_rows)
        by_id, by_value, has_no_id = [nothing], [nothing], [pc.invert(nothing)]
        for name in batch.schema.names:
            column, keys = batch.column(name), self._personal.get(name)
            of_value = [match_values(column, keys)] if keys else []
            if name in self._ids:
                # Of people without a subject, both are known.
                by_id += [match_ids(column, self._ids[name]), *of_value]
                has_no_id.append(is_blank(column))
            else:
                by_value += of_value
        matches: Any = pc.or_(any_of(by_id), pc.and_(all_of(has_no_id), any_of(by_value)))
        positions: Any = pc.indices_nonzero(matches)
        rows: list[int] = positions.to_pylist()
        return rows

    @cached_property
    def _ids(self) -> dict[str, set[str]]:
        return _by_column((one.subject, map(normal_id, one.ids)) for one in self.persons)

    @cached_property
    def _personal(self) -> dict[str, set[str]]:
        columns = (pair for one in self.persons for pair in one.personal.items())
        return _by_column((name, map(folded, values)) for name, values in columns)


def _by_column(pairs: Iterable[tuple[str, Iterable[str]]]) -> dict[str, set[str]]:
    """Unite the values of each column that are not empty."""
    columns: dict[str, set[str]] = {}
    for name, values in pairs:
        columns.setdefault(name, set()).update(filter(None, values))
    return columns


@dataclass(frozen=True)
class PersonText:
    """Finds some people in text."""

    persons: Sequence[Person]

    @property
    def longest_bytes(self) -> int:
        """The length of the longest value, in bytes."""
        return self._search.margin

    def is_in(self, text: bytes) -> bool:
        """Return whether a text contains a distinctive value."""
        return bool(self._search.find(text))

    def may_be_in(self, values: Sequence[str]) -> bool:
        """Return whether any value equals an id that is not distinctive."""
        return not self._short_ids.isdisjoint(map(normal_id, values))

    def is_in_name(self, name: str) -> bool:
        """Return whether a file name contains a distinctive value."""
        return self.is_in(name.encode("utf-8", "replace"))

    def erased(self, text: str) -> str:
        """Return a text with `[erased]` for each distinctive value."""
        content = text.encode("utf-8", "surrogatepass")
        for hit in reversed(self._search.find(content)):
            content = content[: hit.start] + ERASED.encode() + content[hit.end :]
        return content.decode("utf-8", "surrogatepass")

    @cached_property
    def _search(self) -> ByteSearch:
        return ByteSearch(SearchedValues(self.persons))

    @cached_property
    def _short_ids(self) -> frozenset[str]:
        ids = {value for person in self.persons for value in person.ids}
        return frozenset(normal_id(value) for value in ids if not is_distinctive(value))


def find_in_files(
    store: ObjectStore, feed: Feed, persons: Sequence[Person], *, home: Path
) -> dict[str, int]:
    """Count the rows of some people in each file, by key; nothing is changed.

    A key has `[erased]` for a value of a person. A file that can contain more rows is included.
    """
    files = _FeedFiles(store, feed, persons, "", home)
    rows = {}
    for place, prefix in files.places:
        for item in _delivered(place, feed, prefix):
            found = files.search(item, partial(place.open, item.key))
            if found and (found.positions or found.problem):
                rows[files.shown(place, item.key)] = len(found.positions)
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

    It locks the feed. After a kill, the next call has the same result.

    :param persons: their `subject` is the name of the feed's column.
    :param request: the request's id, for the ledger.
    :param erase_whole: keys or hashes of unreadable files to empty.
    :raises TableBusy: if an ingest of the feed takes longer than an hour.
    """
    with lock_feed(feed, home) as ingest:
        files = _FeedFiles(store, feed, persons, request, home, frozenset(erase_whole))
        for place, prefix in files.places:
            files.erase_from(place, prefix, ingest.staging)
    return FilesRewritten(
        tuple(sorted(files.rewritten)),
        tuple(sorted(files.unreadable)),
        frozenset(files.emptied),
    )


@dataclass
class _FeedFiles:
    """The delivered files of a feed, and what a request changes in them."""

    store: ObjectStore
    feed: Feed
    persons: Sequence[Person]
    request: str
    home: Path
    erase_whole: frozenset[str] = frozenset()
    rewritten: list[ErasedFile] = field(default_factory=list)
    unreadable: list[UnreadableFile] = field(default_factory=list)
    emptied: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._rows, self._text = PersonRows(self.persons), PersonText(self.persons)

    @cached_property
    def places(self) -> list[tuple[ObjectStore, str]]:
        """The stores and prefixes with files of the feed."""
        own = [self.feed.inbox, self.feed.archive, self.feed.rejected]
        places = [(self.store, prefix) for prefix in own]
        for copies in sorted(self.home.glob(_COPIES)):
            # Of a running or killed process that ingests files that a caller named.
            places.append((LocalObjectStore(copies), self.feed.inbox))
        return places

    def erase_from(self, store: ObjectStore, prefix: str, folder: Path) -> None:
        """Erase people from the files below a prefix.

        :param folder: for temporary files.
        """
        self._remove_unfinished(store, prefix)
        rewriting = Rewriting(
            store,
            self.feed,
            RewrittenFiles(self.store, self.feed),
            folder,
            look_into(self.feed, self._rows, self._text),
            self.request,
            self._ledger_name,
        )
        for item in _delivered(store, self.feed, prefix):
            self._rewrite(rewriting, item)
        for old in store.old_versions(prefix):
            found = self.search(old, partial(store.open_old, old))
            if found and (found.positions or found.problem):
                store.remove_old(old)

    def search(self, item: StoredObject, open_file: Open) -> FoundRows | None:
        """Search a file; None if it was removed meanwhile."""
        try:
            return find_rows(self.feed, item.key, open_file, self._rows, self._text)
        except FileNotFoundError:
            return None

    def shown(self, store: ObjectStore, key: str) -> str:
        """Return the key of a file without a value of the people."""
        return self._text.erased(key if store is self.store else store.uri(key))

    def _rewrite(self, rewriting: Rewriting, item: StoredObject) -> None:
        store = rewriting.store
        found = self.search(item, partial(store.open, item.key))
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
        if is_done and (known.is_erased or found.sha256 == NOTHING):
            self.emptied |= named
        if problem and not (is_done and known.is_erased):
            self._note(store, item.key, problem)
        if self._text.is_in_name(item.key):
            self._note(store, item.key, "its name contains a value of a person")

    def _exchange(
        self,
        rewriting: Rewriting,
        item: StoredObject,
        found: FoundRows,
        known: KnownContent,
        is_named: bool,
    ) -> StoredObject | None:
        """Rewrite or empty a file if necessary, and return its new state; None if it changed."""
        must_be_emptied = known.is_erased or (is_named and bool(found.problem))
        if must_be_emptied and found.sha256 != NOTHING:
            return rewriting.leave_nothing(item, found.sha256, known)
        numbers = RowNumbers.without(known.missing)
        rows = {numbers.number(position) for position in found.positions}
        if not rows:
            return item
        # Until then, a writer can append to it.
        time.sleep(seconds_until_settled(rewriting.store, item, datetime.now(UTC)))
        return rewriting.leave_out(item, found, known, rows)

    def _collect(self, store: ObjectStore, key: str, known: KnownContent) -> None:
        """Add all changes of a file by the request, including earlier calls."""
        name = self._ledger_name(delivered_name(self.feed, key, known.sha256))
        for change in known.changes:
            if (change.request, change.file) == (self.request, name):
                shown = self.shown(store, key)
                self.rewritten.append(
                    ErasedFile(shown, known.sha256, change.new_sha256, len(change.left_out))
                )

    def _remove_unfinished(self, store: ObjectStore, prefix: str) -> None:
        """Remove temporary files of killed processes. In the inbox, another process can be
        writing; the verifier finds people there.
        """
        if prefix != self.feed.inbox:
            store.discard_uploads(prefix)
            for item in store.unfinished(prefix):
                if _OWN_UNFINISHED.search(item.key):
                    store.remove(item)

    def _note(self, store: ObjectStore, key: str, why: str) -> None:
        self.unreadable.append(UnreadableFile(self.shown(store, key), why))

    def _ledger_name(self, name: str) -> str:
        return ledger_name(name, self._text.is_in_name)


def _delivered(store: ObjectStore, feed: Feed, prefix: str) -> Iterator[StoredObject]:
    """Yield the files below a prefix, without the reasons of rejected ones."""
    for item in store.objects(prefix):
        if not (prefix == feed.rejected and item.key.endswith(REASON_ENDING)):
            yield item
