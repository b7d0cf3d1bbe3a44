"""Which rows of a delivered file are those of some people: read as its feed reads it, or, of a
file that is not what the feed declares, row by row as far as its bytes can be divided.
"""

import gzip
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, BinaryIO, Protocol

from lakehouse.errors import FileRejected, LakehouseError
from lakehouse.ingestion.archive_names import file_format
from lakehouse.ingestion.readers.arrow_types import with_texts
from lakehouse.ingestion.readers.byte_source import HashedBytes, Readable, unpacked
from lakehouse.ingestion.readers.formats import open_landed, row_bytes
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
    """Finds the rows of some people."""

    @property
    def columns(self) -> frozenset[str]:
        """The columns that the people are found by."""

    def of_batch(self, batch: "pa.RecordBatch") -> Sequence[int]:
        """Return the places, from 0, of their rows among those of a batch, in order."""


class TextFinder(Protocol):
    """Finds some people in text that cannot be read as rows."""

    @property
    def longest_bytes(self) -> int:
        """How long the longest of their values is."""

    def is_in(self, text: bytes) -> bool:
        """Whether a value of theirs that can be told from others is in a text."""

    def may_be_in(self, values: Sequence[str]) -> bool:
        """Whether one of some values equals one of theirs that others may have too."""


@dataclass(frozen=True)
class FoundRows:
    """What was found in a file: its hash, how many rows it has, and the numbers of the rows of
    the people, as they are counted in this content.

    `problem` says why more of theirs may be in it; it holds no value.
    `is_readable` says whether it is what its feed declares.
    """

    sha256: str
    rows: int
    positions: tuple[int, ...] = ()
    problem: str = ""
    is_readable: bool = True


def find_rows(
    feed: Feed, name: str, open_file: Open, finder: RowFinder, text: TextFinder | None = None
) -> FoundRows:
    """Read a file, and find the rows of some people.

    :param name: tells the format.
    :param text: searches what cannot be read as rows; without it nobody is found there.
    """
    its_format = format_of(feed, name)
    if file_format(feed, name) is None:
        return _find_in_bytes(feed, open_file, its_format, finder, text)
    # Threads read shorter rows: what is refused with them is tried without.
    for use_threads in (True, False):
        try:
            return _find_in_rows(feed, its_format, open_file, finder, use_threads=use_threads)
        except FileRejected:
            continue
    return _find_in_bytes(feed, open_file, its_format, finder, text)


def format_of(feed: Feed, name: str) -> str:
    """Return the format that a file is searched and written as; one of another kind is often the
    feed's, called otherwise.
    """
    return file_format(feed, name) or _OF_OTHER_KINDS


def _find_in_rows(
    feed: Feed, its_format: str, open_file: Open, finder: RowFinder, *, use_threads: bool
) -> FoundRows:
    positions: list[int] = []
    rows = 0
    with open_file() as raw:
        delivered = HashedBytes(raw, _ignore_progress)
        reader = open_landed(feed, its_format, delivered, use_threads=use_threads)
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
        except (EOFError, gzip.BadGzipFile, zlib.error):
            found = _unreadable("it is no complete compressed file")
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
    return FoundRows("", 0, problem=problem, is_readable=False)


def _ignore_progress(_: int) -> None:
    """Nobody waits for it."""


class _Search:
    """The rows of a file that is not what its feed declares, one after the other."""

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
        """Take the next bytes of the file."""
        if row.is_rest:
            self._search_rest(row.raw)
        elif row.number is not None:
            self._rows = row.number
            self._add(row.number, self.division.values(row.raw), row.raw)

    def end(self) -> FoundRows:
        """Return what was found."""
        self._find()
        positions = tuple(sorted(self._positions))
        return FoundRows("", self._rows, positions, self._problem, is_readable=False)

    def _add(self, number: int, values: list[str], raw: bytes) -> None:
        if self._names is None:
            self._names = list(self._feed.named(values))
            self._search_text(number, values, raw)
            return
        is_named = self._is_header(self._names)
        if is_named:
            # In a row of too few or too many values those at the beginning may be in place.
            fields = len(self._names)
            in_place = [*values, *[""] * (fields - len(values))][:fields]
            self._batch.append((number, in_place))
        self._batch_bytes += len(raw)
        if not is_named or len(values) != len(self._names):
            self._search_text(number, values, raw)
        if self._batch_bytes > _BATCH_BYTES:
            self._find()

    def _is_header(self, names: list[str]) -> bool:
        """Whether the first row names a column that the people are found by, and all once."""
        return not self._finder.columns.isdisjoint(names) and len(set(names)) == len(names)

    def _find(self) -> None:
        """Find the rows that came since the last time."""
        self._positions.update(self._found_in_batch())
        if self._uncertain - self._positions:
            self._problem = self._problem or "a row that nobody can read may be theirs"
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
        """Search a row of which nobody knows which value is of which column."""
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
            self._problem = f"{_REST} holds a value of theirs"
        elif self._text.may_be_in(tokens):
            self._problem = self._problem or f"{_REST} may hold a row of theirs"
        self._end_of_rest = piece[-self._text.longest_bytes :]
