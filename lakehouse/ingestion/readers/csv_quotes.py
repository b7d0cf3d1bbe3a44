"""Check that each quoted CSV value ends at its closing quote.

Arrow appends text after a closing quote to the value. Then two rows with an extra quote at the
start of the same field become one row, and the rows between them become part of a value.
"""

import re
from codecs import BOM_UTF8
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_QUOTE = b'"'
_LINE_ENDS = (b"\n", b"\r\n", b"\r")
# The state at the end of a block, represented as the bytes to prepend to the next one: at the
# start of a field, in a plain field, in a quoted value, after a quote that closes or is the
# first of two.
_AT_START, _IN_PLAIN, _IN_QUOTED, _CLOSED = b"\n", b"x", b'\n"', b'\n""'


class ClosingQuotes:
    """Checks the blocks of a file in order, without storing them.

    As in Arrow, a quote opens a value only at the start of a field; in a plain field it is a
    normal character.

    :param counts_rows: whether to count rows, to locate a fault; this is slow.
    """

    def __init__(self, delimiter: str, *, counts_rows: bool) -> None:
        self._ends = delimiter.encode() + b"\r\n"
        self._delimiter = delimiter
        self._counts_rows = counts_rows
        self._before = b""
        self._rows = 0
        self._is_in_row = False

    @property
    def row(self) -> int:
        return self._rows

    def are_followed(self, block: bytes) -> bool:
        """Return whether a delimiter, a line end or another quote follows each closing quote in
        the next block.

        The first block must be at least as long as a byte-order mark.
        """
        if not self._before:
            self._before, block = _AT_START, block.removeprefix(BOM_UTF8)
        if self._counts_rows:
            return self._are_followed_by_rows(self._before + block)
        if _QUOTE not in block and self._before in (_AT_START, _IN_PLAIN):
            self._end(block or self._before)
            return True
        text = self._before + block
        return self._are_all_simple(text) or self._are_followed_in(text)

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
        match = _rest(self._delimiter).match(text, text.startswith(_AT_START))
        if match:
            self._end_by(match)
        return match is not None

    def _are_followed_by_rows(self, text: bytes) -> bool:
        pattern = _row(self._delimiter)
        end = int(text.startswith(_AT_START))
        while end < len(text):
            match = pattern.match(text, end)
            if match is None:
                return False
            self._end_by(match)
            end, raw = match.end(), match.group()
            self._is_in_row |= raw not in _LINE_ENDS
            if match["line_end"]:
                self._rows += self._is_in_row
                self._is_in_row = False
        return True

    def _end_by(self, match: re.Match[bytes]) -> None:
        if match["open"] is not None:
            self._before = _IN_QUOTED
        elif match["closed"] is not None:
            self._before = _CLOSED
        else:
            self._end(match.string[: match.end()][-1:])

    def _end(self, text: bytes) -> None:
        """Store the state after a text that ends outside of quotes."""
        self._before = _AT_START if text[-1] in self._ends else _IN_PLAIN


@cache
def _rest(delimiter: str) -> re.Pattern[bytes]:
    """Return a pattern that matches a text to its end unless it has a fault."""
    return re.compile(_fields(delimiter, rb'[^"]*+') + rb"(?:\Z|" + _cut(delimiter) + rb")")


@cache
def _row(delimiter: str) -> re.Pattern[bytes]:
    """Return a pattern that matches a complete or truncated row unless it has a fault."""
    line_end = rb"(?P<line_end>\r\n?|\n)"
    cut = _cut(delimiter)
    return re.compile(
        _fields(delimiter, rb'[^"\r\n]*+') + rb"(?:" + line_end + rb"|\Z|" + cut + rb")"
    )


def _fields(delimiter: str, between: bytes) -> bytes:
    """Return the pattern of fields up to a truncated value, without backtracking."""
    ends = re.escape(delimiter.encode()) + rb"\r\n"
    quoted = rb"(?<=[" + ends + rb'])(?:"[^"]*+")++(?=[' + ends + rb"])"
    plain = rb"(?<![" + ends + rb'"])"[^' + ends + rb"]*+"
    return rb"(?:" + between + rb"(?:" + quoted + rb"|" + plain + rb"))*+" + between


def _cut(delimiter: str) -> bytes:
    """Return the pattern of a quoted value at the end of a text, either open or possibly
    closed.
    """
    start = rb"(?<=[" + re.escape(delimiter.encode()) + rb"\r\n])"
    is_open = rb'(?P<open>(?:"[^"]*+")*+"[^"]*+\Z)'
    return start + rb"(?:" + is_open + rb'|(?P<closed>(?:"[^"]*+")++\Z))'
