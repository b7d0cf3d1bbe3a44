"""Find the rows of data subjects in a delivered file, by its reader or in its bytes."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Protocol

from lakehouse.errors import FileRejected, LakehouseError
from lakehouse.iceberg.erasure.suppression_list import ErasedIds, SuppressionList
from lakehouse.ingestion.archive_names import file_format
from lakehouse.ingestion.readers.arrow_types import text_of, with_texts
from lakehouse.ingestion.readers.byte_source import (
    DamagedCompression,
    HashedBytes,
    Readable,
    unpacked,
)
from lakehouse.ingestion.readers.file_formats import open_reader, row_bytes
from lakehouse.ingestion.readers.row_bytes import RowBytes
from lakehouse.tables.feed import Feed

if TYPE_CHECKING:
    import pyarrow as pa

Open = Callable[[], BinaryIO]
_BATCH_BYTES = 4 << 20
_TOKEN = re.compile(rb"[^\s,;|\"']+")
_OF_OTHER_KINDS = "csv"
_NO_TEXT = "it has bytes that no text of the feed has"
_ONE_DIGIT = re.compile(r"(?<=[-T ])\d(?=\D|$)")
"""A month, day or hour of one digit, which a cast accepts."""
_BEFORE_OFFSET = re.compile(r"\s+(?=[+-]\d\d|Z$)")
_REST = "a part of it, which cannot be divided into rows,"


class RowFinder(Protocol):
    """Finds the rows of some data subjects."""

    @property
    def columns(self) -> frozenset[str]:
        """The columns that identify the data subjects."""

    def of_batch(self, batch: "pa.RecordBatch") -> Sequence[int]:
        """Return the sorted, zero-based positions of matching rows in a batch."""


class TextFinder(Protocol):
    """Finds data subjects in text that cannot be parsed into rows."""

    @property
    def longest_bytes(self) -> int:
        """The length of the longest value, in bytes."""

    def is_in(self, text: bytes) -> bool:
        """Return whether the text contains a value that identifies a data subject."""

    def may_be_in(self, values: Sequence[str]) -> bool:
        """Return whether any value equals one that others may have too."""


@dataclass(frozen=True)
class FoundRows:
    """The search result for a file: its hash, row count and the numbers of matching rows.

    `problem` says why more of theirs may be in it; it holds no value.
    """

    sha256: str
    rows: int
    positions: tuple[int, ...] = ()
    problem: str = ""


def find_rows(
    feed: Feed, name: str, open_file: Open, finder: RowFinder, text: TextFinder | None = None
) -> FoundRows:
    """Read a file and find the rows of some data subjects.

    :param name: determines the format.
    :param text: searches text that cannot be parsed into rows; without it, such text has no
        matches.
    """
    its_format = format_of(feed, name)
    if file_format(feed, name) is None:
        return _find_in_bytes(feed, open_file, its_format, finder, text)
    # Multi-threaded reading has a lower row length limit, so retry without threads.
    for use_threads in (True, False):
        try:
            return _find_in_rows(feed, its_format, open_file, finder, use_threads=use_threads)
        except FileRejected:
            continue
    return _find_in_bytes(feed, open_file, its_format, finder, text)


def format_of(feed: Feed, name: str) -> str:
    """Return the format of a file; one with an unknown ending is often a CSV file of the feed."""
    return file_format(feed, name) or _OF_OTHER_KINDS


def _find_in_rows(
    feed: Feed, its_format: str, open_file: Open, finder: RowFinder, *, use_threads: bool
) -> FoundRows:
    positions: list[int] = []
    rows = 0
    with open_file() as raw:
        delivered = HashedBytes(raw)
        reader = open_reader(feed, its_format, delivered, use_threads=use_threads)
        for batch in reader.batches():
            found = finder.of_batch(with_texts(batch, finder.columns))
            positions += [rows + 1 + place for place in found]
            rows += batch.num_rows
        return FoundRows(delivered.sha256(), rows, tuple(positions))


def _find_in_bytes(
    feed: Feed,
    open_file: Open,
    its_format: str,
    finder: RowFinder,
    text: TextFinder | None,
) -> FoundRows:
    with open_file() as raw:
        delivered = HashedBytes(raw)
        try:
            search = _Search(feed, finder, text, row_bytes(its_format, feed.delimiter))
            found = search.run(unpacked(delivered, its_format))
        except DamagedCompression:
            found = _unreadable("it is not a complete compressed file")
        except LakehouseError as error:
            found = _unreadable(str(error))
        return replace(found, sha256=delivered.sha256())


def _unreadable(problem: str) -> FoundRows:
    return FoundRows("", 0, problem=problem)


class _Search:
    """A row-by-row search in a file that does not match its feed."""

    def __init__(
        self, feed: Feed, finder: RowFinder, text: TextFinder | None, division: RowBytes
    ) -> None:
        self._feed = feed
        self._finder = finder
        self._text = text
        self._division = division
        self._names: list[str] = []
        self._positions: set[int] = set()
        self._end_of_rest = b""
        self._problem = ""

    def run(self, content: Readable) -> FoundRows:
        rows, batch, batch_bytes = 0, list[_Row](), 0
        for row in self._division.rows(content):
            if b"\0" in row.raw:
                return _unreadable(_NO_TEXT)
            if row.is_rest:
                self._search_rest(row.raw)
            elif row.number is not None:
                rows = row.number
                batch.append(_Row(rows, self._division.values(row.raw), row.raw))
                batch_bytes += len(row.raw)
            if batch_bytes > _BATCH_BYTES:
                self._find(batch)
                batch, batch_bytes = [], 0
        self._find(batch)
        return FoundRows("", rows, tuple(sorted(self._positions)), self._problem)

    def _find(self, batch: list["_Row"]) -> None:
        if batch and not self._names:
            self._names = list(self._feed.named(batch[0].values))
        names = self._names
        is_header = not self._finder.columns.isdisjoint(names) and len(set(names)) == len(names)
        rows = [row for row in batch if row.number and is_header]
        matching = self._matching(rows)
        uncertain = set()
        for row in batch:
            if is_header and row.number and len(row.values) == len(names):
                continue
            # The values cannot be assigned to columns.
            if self._text and self._text.is_in(row.raw):
                matching.add(row.number)
            elif self._text and self._text.may_be_in(row.values):
                uncertain.add(row.number)
        if uncertain - matching:
            self._problem = self._problem or "an unreadable row may belong to a data subject"
        self._positions |= matching

    def _matching(self, rows: list["_Row"]) -> set[int]:
        """Return the numbers of matching rows; a row may have too few or too many values."""
        import pyarrow as pa

        if not rows:
            return set()
        fields = len(self._names)
        in_place = [[*row.values, *[""] * fields][:fields] for row in rows]
        arrays = [pa.array(column, pa.string()) for column in zip(*in_place, strict=True)]
        batch = pa.RecordBatch.from_arrays(arrays, names=self._names)
        return {rows[place].number for place in self._finder.of_batch(batch)}

    def _search_rest(self, raw: bytes) -> None:
        if not self._text:
            return
        piece = self._end_of_rest + raw
        tokens = [token.decode("utf-8", "replace") for token in _TOKEN.findall(piece)]
        if self._text.is_in(piece):
            self._problem = f"{_REST} contains a value of a data subject"
        elif self._text.may_be_in(tokens):
            self._problem = self._problem or f"{_REST} may contain a row of a data subject"
        self._end_of_rest = piece[-self._text.longest_bytes :]


class _Row(NamedTuple):
    """A row with its number, its values and its bytes."""

    number: int
    values: list[str]
    raw: bytes


@dataclass(frozen=True)
class SuppressedRows:
    """Finds the rows of erased data subjects in the files of a feed with a subject."""

    feed: Feed
    ids: ErasedIds | None = None
    names: Collection[str] = ()
    """All names of the feed's subject in any table."""

    @classmethod
    def of(cls, feed: Feed, suppression: SuppressionList) -> "SuppressedRows":
        ids = suppression.read()
        if feed.subject is None or not ids.erased_at:
            return cls(feed)
        return cls(feed, ids, suppression.names_of(feed.table, feed.subject))

    @property
    def columns(self) -> frozenset[str]:
        return frozenset({self.feed.subject} if self.feed.subject and self.ids else ())

    def of_batch(self, batch: "pa.RecordBatch") -> Sequence[int]:
        """Return the positions of the rows that were created before their person's erasure."""
        subject, names = self.feed.subject, batch.schema.names
        if self.ids is None or subject is None or subject not in names:
            return ()
        values: Any = batch.column(names.index(subject)).dictionary_encode()
        erased_at = {}
        for index, value in enumerate(values.dictionary.to_pylist()):
            if value is not None and (at := self.ids.erasure_time(self.names, value)):
                erased_at[index] = at
        if not erased_at:
            return ()
        created = self._created(batch)
        places = []
        for place, index in enumerate(values.indices.to_pylist()):
            if index in erased_at:
                at = read_moment(created[place], self.feed.zone) if created else None
                if at is None or at < erased_at[index]:
                    places.append(place)
        return places

    def _created(self, batch: "pa.RecordBatch") -> list[str | None] | None:
        column = self.feed.moment
        if column is None or column not in batch.schema.names:
            return None
        texts: list[str | None] = text_of(batch.column(column)).to_pylist()
        return texts


def read_moment(text: str | None, zone: tzinfo) -> datetime | None:
    """Parse the timestamp of a row like `casts.cast_sql`, or return None."""
    iso = re.sub(r"\s*(?:UTC|GMT)$", "Z", (text or "").strip().upper())
    iso = _BEFORE_OFFSET.sub("", _ONE_DIGIT.sub(r"0\g<0>", iso))
    try:
        at = datetime.fromisoformat(iso)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=zone)
