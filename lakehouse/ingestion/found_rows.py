"""Find the rows of data subjects in a delivered file: with the feed's reader, or row by row in
the bytes if the file does not match the feed.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, BinaryIO, Protocol

from lakehouse.errors import FileRejected, LakehouseError
from lakehouse.ingestion.archive_names import file_format
from lakehouse.ingestion.readers.arrow_types import with_texts
from lakehouse.ingestion.readers.byte_source import (
    DamagedCompression,
    HashedBytes,
    Readable,
    unpacked,
)
from lakehouse.ingestion.readers.formats import open_reader, row_bytes
from lakehouse.ingestion.readers.row_bytes import Row, RowBytes
from lakehouse.tables.feed import Feed

if TYPE_CHECKING:
    import pyarrow as pa

Open = Callable[[], BinaryIO]
_BATCH_BYTES = 4 << 20
_TOKEN = re.compile(rb"[^\s,;|\"']+")
_OF_OTHER_KINDS = "csv"
_NO_TEXT = "it has bytes that no text of the feed has"
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
        delivered = HashedBytes(raw, _ignore_progress)
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
        delivered = HashedBytes(raw, _ignore_progress)
        try:
            search = _Search(feed, finder, text, row_bytes(its_format, feed.delimiter))
            found = _search(unpacked(delivered, its_format), search)
        except DamagedCompression:
            found = _unreadable("it is not a complete compressed file")
        except LakehouseError as error:
            found = _unreadable(str(error))
        return replace(found, sha256=delivered.sha256())


def _search(content: Readable, search: "_Search") -> FoundRows:
    for row in search.division.rows(content):
        if b"\0" in row.raw:
            return _unreadable(_NO_TEXT)
        search.add(row)
    return search.end()


def _unreadable(problem: str) -> FoundRows:
    return FoundRows("", 0, problem=problem)


def _ignore_progress(_: int) -> None:
    """No caller shows progress here."""


class _Search:
    """A row-by-row search in a file that does not match its feed."""

    def __init__(
        self, feed: Feed, finder: RowFinder, text: TextFinder | None, division: RowBytes
    ) -> None:
        self._feed = feed
        self._finder = finder
        self._text = text
        self.division = division
        self._names: list[str] | None = None
        self._batch: list[tuple[int, list[str]]] = []
        self._batch_bytes = 0
        self._positions: set[int] = set()
        self._uncertain: set[int] = set()
        self._rows = 0
        self._end_of_rest = b""
        self._problem = ""

    def add(self, row: Row) -> None:
        if row.is_rest:
            self._search_rest(row.raw)
        elif row.number is not None:
            self._rows = row.number
            self._add(row.number, self.division.values(row.raw), row.raw)

    def end(self) -> FoundRows:
        self._find()
        positions = tuple(sorted(self._positions))
        return FoundRows("", self._rows, positions, self._problem)

    def _add(self, number: int, values: list[str], raw: bytes) -> None:
        if self._names is None:
            self._names = list(self._feed.named(values))
            self._search_text(number, values, raw)
            return
        is_named = self._is_header(self._names)
        if is_named:
            # In a row with too few or too many values, the first ones may be in the right
            # columns.
            fields = len(self._names)
            in_place = [*values, *[""] * (fields - len(values))][:fields]
            self._batch.append((number, in_place))
        self._batch_bytes += len(raw)
        if not is_named or len(values) != len(self._names):
            self._search_text(number, values, raw)
        if self._batch_bytes > _BATCH_BYTES:
            self._find()

    def _is_header(self, names: list[str]) -> bool:
        """Return whether the first row is a header with an identifying column and no
        duplicates.
        """
        return not self._finder.columns.isdisjoint(names) and len(set(names)) == len(names)

    def _find(self) -> None:
        """Search the rows buffered since the last call."""
        self._positions.update(self._found_in_batch())
        if self._uncertain - self._positions:
            self._problem = self._problem or "an unreadable row may belong to a data subject"
        self._uncertain.clear()
        self._batch, self._batch_bytes = [], 0

    def _found_in_batch(self) -> list[int]:
        import pyarrow as pa

        if not self._batch:
            return []
        columns = zip(*(values for _, values in self._batch), strict=True)
        arrays = [pa.array(column, pa.string()) for column in columns]
        rows = pa.RecordBatch.from_arrays(arrays, names=self._names)
        return [self._batch[place][0] for place in self._finder.of_batch(rows)]

    def _search_text(self, number: int, values: list[str], raw: bytes) -> None:
        """Search a row whose values cannot be assigned to columns."""
        if self._text and self._text.is_in(raw):
            self._positions.add(number)
        elif self._text and self._text.may_be_in(values):
            self._uncertain.add(number)

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
