"""Split a CSV file into the bytes of each row, as Arrow does, to remove some of them."""

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from functools import cache, partial

from lakehouse.ingestion.readers.byte_source import Readable, read_head
from lakehouse.ingestion.readers.row_bytes import Row, RowBytes, rest_of

LONGEST_ROW_BYTES = 16 << 20
"""The block size with one thread, which limits the length of a row."""
# Arrow reads a row that spans two blocks. The end of a longer row is unknown: a quote may never
# be closed.
_MOST_PENDING_BYTES = 2 * LONGEST_ROW_BYTES
_READ_BYTES = 4 << 20
_EMPTY_LINES = (b"\n", b"\r\n", b"\r")
# As in Arrow, a quote opens a value only at its start; `\Z` matches an open quote at the end of
# the text. The pattern does not backtrack, so it is linear.
_QUOTED = rb'(?:"[^"]*+(?:""[^"]*+)*+(?:"|\Z))?+'


@cache
def csv_row_bytes(delimiter: str = ",") -> RowBytes:
    return RowBytes(
        partial(csv_rows, delimiter=delimiter), partial(csv_values, delimiter=delimiter)
    )


def csv_rows(content: Readable, delimiter: str = ",") -> Iterator[Row]:
    """Yield all bytes of a file in order, row by row, with at most one row and block in memory."""
    pattern = row_pattern(delimiter)
    pending, number, is_over = read_head(content), 0, False
    if pending.startswith(BOM_UTF8):
        yield Row(None, BOM_UTF8)
        pending = pending.removeprefix(BOM_UTF8)
    while not is_over:
        block = content.read(_READ_BYTES)
        is_over, pending = not block, pending + block
        end = 0
        while (match := pattern.match(pending, end)) and _is_complete(
            pending, match.end(), is_over
        ):
            end, raw = match.end(), match.group()
            is_row = raw not in _EMPTY_LINES
            yield Row(number if is_row else None, raw)
            number += is_row
        pending = pending[end:]
        if len(pending) > _MOST_PENDING_BYTES:
            yield Row(None, pending, is_rest=True)
            yield from rest_of(content)
            return
    if pending:
        yield _last(pending, number, pattern)


def csv_values(raw: bytes, delimiter: str = ",") -> list[str]:
    """Return the values of a row as text; bytes that are not UTF-8 become U+FFFD."""
    values = []
    for match in _field(delimiter).finditer(raw.rstrip(b"\r\n")):
        quoted, plain, mark = match.groups(b"")
        value = quoted.replace(b'""', b'"') + plain
        values.append(value.decode("utf-8", "replace"))
        if not mark:
            break
    return values


@cache
def row_pattern(delimiter: str) -> re.Pattern[bytes]:
    """Return the linear pattern of a row with its line end."""
    mark = re.escape(delimiter.encode())
    value = _QUOTED + rb"[^" + mark + rb"\r\n]*+"
    return re.compile(rb"(?:" + value + mark + rb")*+" + value + rb"(?:\r\n?|\n)")


@cache
def _field(delimiter: str) -> re.Pattern[bytes]:
    mark = re.escape(delimiter.encode())
    quoted = rb'(?:"([^"]*+(?:""[^"]*+)*+)"?+)?+'
    return re.compile(quoted + rb"([^" + mark + rb"\r\n]*+)(" + mark + rb")?+")


def _is_complete(text: bytes, end: int, is_over: bool) -> bool:
    """Return whether a row is complete: a line feed may follow a carriage return."""
    return is_over or end < len(text) or text.endswith(b"\n")


def _last(raw: bytes, number: int, pattern: re.Pattern[bytes]) -> Row:
    """Return bytes without a final line end: the last row, or an unclosed quote."""
    is_closed = pattern.fullmatch(raw + b"\n") is not None
    return Row(number, raw) if is_closed else Row(None, raw, is_rest=True)
