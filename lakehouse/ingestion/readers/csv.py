"""Read the rows of a delivered CSV file with Arrow, in blocks; errors contain no values.

One pass both checks and lands a file. Fields are strings as delivered, including white space.
An empty field is NULL and a quoted one (`""`) is the empty string. Empty lines are skipped and
not counted. Arrow treats an unclosed quote as a value up to the end of the file; therefore a
marker row is appended, and must be the last row that Arrow returns. Arrow also continues after
a closing quote, even across lines; therefore quotes are checked first.

Each quoted value has to end at its closing quote: Arrow appends text after a closing quote to
the value. Then two rows with an extra quote at the start of the same field become one row, and
the rows between them become part of a value.
"""

import re
import secrets
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from lakehouse.errors import FileRejected
from lakehouse.ingestion.readers.byte_source import ParsedBytes, Readable, ReadAhead, read_head
from lakehouse.ingestion.readers.compression import reject_damaged
from lakehouse.ingestion.readers.csv_first_row import header_names
from lakehouse.ingestion.readers.csv_header import plan_header
from lakehouse.ingestion.readers.csv_rows import LONGEST_ROW_BYTES
from lakehouse.tables.feed import Feed

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa
    from pyarrow import csv


_QUOTE = b'"'
# The state at the end of a block, represented as the bytes to prepend to the next one: at the
# start of a field, in a plain field, in a quoted value, after a quote that closes or is the
# first of two.
_AT_START, _IN_PLAIN, _IN_QUOTED, _CLOSED = b"\n", b"x", b'\n"', b'\n""'


class ClosingQuotes:
    """Checks the blocks of a file in order, without storing them.

    As in Arrow, a quote opens a value only at the start of a field; in a plain field it is a
    normal character.
    """

    def __init__(self, delimiter: str) -> None:
        self._ends = delimiter.encode() + b"\r\n"
        self._delimiter = delimiter
        self._before = b""
        self.line = 1
        """The line of the next block, or of the fault."""

    def are_followed(self, block: bytes) -> bool:
        """Return whether a delimiter, a line end or another quote follows each closing quote in
        the next block.

        The first block must be at least as long as a byte-order mark.
        """
        if not self._before:
            self._before, block = _AT_START, block.removeprefix(BOM_UTF8)
        if _QUOTE not in block and self._before in (_AT_START, _IN_PLAIN):
            self._end(block or self._before)
        else:
            text = self._before + block
            if not (self._are_all_simple(text) or self._are_followed_in(text)):
                begin = len(self._before)
                fault = _begin(self._delimiter).match(text, text.startswith(_AT_START))
                self.line += text.count(b"\n", begin, fault.end() if fault else begin)
                return False
        self.line += block.count(b"\n")
        return True

    def _are_all_simple(self, text: bytes) -> bool:
        """Return whether all quotes delimit well-formed values; then their neighbours decide."""
        import numpy as np

        signs = np.frombuffer(text, np.uint8)
        quotes = np.flatnonzero(signs == _QUOTE[0])
        before = signs[quotes[0::2] - 1]
        behind = signs[np.minimum(quotes[1::2] + 1, len(text) - 1)]
        if not (self._are_neighbours(before) and self._are_neighbours(behind)):
            return False
        if len(quotes) % 2:
            self._before = _IN_QUOTED
        elif text.endswith(_QUOTE):
            self._before = _CLOSED
        else:
            self._end(text)
        return True

    def _are_neighbours(self, signs: "npt.NDArray[np.uint8]") -> bool:
        right = signs == _QUOTE[0]
        for end in self._ends:
            right |= signs == end
        return bool(right.all())

    def _are_followed_in(self, text: bytes) -> bool:
        match = _whole(self._delimiter).match(text, text.startswith(_AT_START))
        if match is None:
            return False
        if match["open"] is not None:
            self._before = _IN_QUOTED
        elif match["closed"] is not None:
            self._before = _CLOSED
        else:
            self._end(text)
        return True

    def _end(self, text: bytes) -> None:
        """Store the state after a text that ends outside of quotes."""
        self._before = _AT_START if text[-1] in self._ends else _IN_PLAIN


@cache
def _begin(delimiter: str) -> re.Pattern[bytes]:
    """Return the pattern of a text up to a fault or a truncated value, without backtracking."""
    ends = re.escape(delimiter.encode()) + rb"\r\n"
    quoted = rb"(?<=[" + ends + rb'])(?:"[^"]*+")++(?=[' + ends + rb"])"
    plain = rb"(?<![" + ends + rb'"])"[^' + ends + rb"]*+"
    return re.compile(rb'(?:[^"]*+(?:' + quoted + rb"|" + plain + rb'))*+[^"]*+')


@cache
def _whole(delimiter: str) -> re.Pattern[bytes]:
    """Return the pattern of a text without a fault; its last value can be truncated."""
    start = rb"(?<=[" + re.escape(delimiter.encode()) + rb"\r\n])"
    is_open = rb'(?P<open>(?:"[^"]*+")*+"[^"]*+\Z)'
    cut = start + rb"(?:" + is_open + rb'|(?P<closed>(?:"[^"]*+")++\Z))'
    return re.compile(_begin(delimiter).pattern + rb"(?:\Z|" + cut + rb")")


T = TypeVar("T")
BLOCK_BYTES = 4 << 20
"""The block size with threads; a few megabytes of empty fields need a hundred as rows."""
_CORRECT = "Correct the file and put it back."
_SAVE_AS_UTF8 = "Save it as UTF-8 and put it back."
# Arrow's handler of invalid rows fails for a row that is not UTF-8; the start of its messages
# is sufficient.
_RAGGED = re.compile(
    r"CSV parse error: (?:Row #(?P<row>\d+): )?Expected (?P<expected>\d+) columns, got"
    r" (?P<found>\d+)"
)
_NOT_UTF8 = re.compile(
    r"In CSV column #(?P<column>\d+): (?:Row #(?P<row>\d+): )?.*invalid UTF8"
)


class CsvReader:
    """Reads a header and rows. Without threads it is half as fast, but knows row numbers and
    reads longer rows.
    """

    def __init__(self, feed: Feed, text: Readable, *, use_threads: bool) -> None:
        self._feed = feed
        self._text = text
        self._use_threads = use_threads
        self._block_bytes = BLOCK_BYTES if use_threads else LONGEST_ROW_BYTES
        self._head = reject_damaged(lambda: read_head(text))
        self._names_in_file = header_names(feed, self._head)
        self.header = plan_header(feed, feed.named(self._names_in_file))

    def batches(self) -> "Iterator[pa.RecordBatch]":
        """Yield the rows in order, in non-empty batches of the planned columns."""
        mark = secrets.token_hex(16)
        last = None
        for batch in self._parsed(mark):
            if last is not None:
                yield last
            last = batch
        if last is None or last.column(0)[-1].as_py() != mark:
            found = "a file that ends inside of a quoted field"
            raise _rejected("a quote that is never closed", found, "closed quotes")
        if last.num_rows > 1:
            yield last.slice(0, last.num_rows - 1)

    def _parsed(self, mark: str) -> "Iterator[pa.RecordBatch]":
        ahead = ReadAhead()
        reader = self._call(lambda: self._open(mark, ahead))
        rows = 0
        try:
            while (batch := self._call(lambda: self._read(reader, ahead))) is not None:
                if batch.num_rows:
                    _check_no_header(batch, rows)
                    rows += batch.num_rows
                    yield batch.rename_columns(list(self.header.columns))
        finally:
            ahead.close()
            # Wait until Arrow stops reading ahead, so that the file can be closed.
            reader.close()

    def _read(
        self, reader: "csv.CSVStreamingReader", ahead: ReadAhead
    ) -> "pa.RecordBatch | None":
        ahead.begin()
        try:
            return next(reader, None)
        finally:
            ahead.end()

    def _open(self, mark: str, ahead: ReadAhead) -> "csv.CSVStreamingReader":
        import pyarrow as pa
        from pyarrow import csv

        delimiter = self._feed.delimiter
        in_file = dict(zip(self.header.names, self._names_in_file, strict=True))
        tail = "\n" + delimiter.join([mark] * len(self.header.names)) + "\n"
        look = self._look_at_quotes()
        parsed = ParsedBytes(self._head, self._text, tail.encode(), ahead, look)
        return csv.open_csv(
            # pyarrow accepts its own files and any object with `read`; its type stubs know
            # neither.
            pa.PythonFile(parsed, mode="r"),  # type: ignore[arg-type]
            read_options=csv.ReadOptions(
                block_size=self._block_bytes, use_threads=self._use_threads
            ),
            parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(self._names_in_file, pa.string()),
                include_columns=[in_file[name] for name in self.header.columns],
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    def _look_at_quotes(self) -> Callable[[bytes], None]:
        quotes = ClosingQuotes(self._feed.delimiter)

        def look(block: bytes) -> None:
            if not quotes.are_followed(block):
                raise _rejected(
                    "text after a closing quote",
                    f"a quoted value that continues after its quote near line {quotes.line}",
                    f"{self._feed.delimiters} or line ends behind closing quotes",
                    'Write quotes inside of quoted values twice (""), and put the file back.',
                )

        return look

    def _call(self, read: Callable[[], T]) -> T:
        import pyarrow as pa

        try:
            return reject_damaged(read)
        except pa.ArrowInvalid as error:
            message = str(error)
        # Raised outside of the handler: the Arrow error contains the row.
        raise self._reason(message)

    def _reason(self, message: str) -> FileRejected:
        if match := _RAGGED.match(message):
            found, expected = (
                f"{match['found']} fields {_row_number(match['row'])}",
                f"{match['expected']}, as in the header",
            )
            has_more = int(match["found"]) > int(match["expected"])
            next_step = (
                f"Quote fields that contain {self._feed.delimiters} or line breaks."
                if has_more
                else _CORRECT
            )
            return _rejected("a ragged row", found, expected, next_step)
        if match := _NOT_UTF8.match(message):
            column = self.header.names[int(match["column"])]
            shown = f"in column {column} " if column in self._feed.column_names else ""
            return _rejected(
                "not UTF-8",
                f"other bytes {shown}{_row_number(match['row'])}",
                "UTF-8 text",
                _SAVE_AS_UTF8,
            )
        if "straddl" in message:
            found = (
                f"a row of more than {self._block_bytes >> 20} MB, which may be a quote that is"
                " never closed"
            )
            return _rejected("a row too long", found, "shorter rows")
        return _rejected(
            "not a CSV file",
            "text that cannot be parsed",
            f"rows of fields with {self._feed.delimiters} between them and double quotes",
        )


def _check_no_header(batch: "pa.RecordBatch", rows_before: int) -> None:
    """Reject a header repeated among the rows; a single name may be a value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = [name for name in batch.schema.names if name]
    # In joined files, the first name of each header can follow a byte-order mark.
    if len(names) < 2 or all(pc.index(batch.column(n), n).as_py() < 0 for n in names[:2]):
        return
    is_header: Any = pa.scalar(True)
    for name in names:
        values = pc.utf8_ltrim(batch.column(name), "\ufeff")
        is_header = pc.and_(is_header, pc.equal(values, pa.scalar(name)))
    if (place := pc.index(is_header, True).as_py()) >= 0:
        raise _rejected(
            "a repeated header",
            f"the header again in row {rows_before + place + 1}",
            "it in the first line only",
            "Delete that row from the file and put it back.",
        )


def _row_number(number: str | None) -> str:
    # Arrow counts the header as the first row, and only with one thread.
    return f"in row {int(number) - 1}" if number else "in some row"


def _rejected(
    reason: str, found: str, expected: str, next_step: str = _CORRECT
) -> FileRejected:
    return FileRejected(reason, found=found, expected=expected, next_step=next_step)
