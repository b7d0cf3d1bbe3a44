"""Split a file of any format into the bytes of its rows, to remove some of them."""

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from lakehouse.ingestion.readers.byte_source import Readable

_BLOCK_BYTES = 1 << 20
RemovedRows = Container[int]
"""Row numbers in a content."""


class Row(NamedTuple):
    """Bytes of a file including the line end.

    `number` is the row number in bronze, from 1 after the header, which is 0. It is None for a
    byte-order mark, an empty line or a part of a remainder that cannot be split, marked by
    `is_rest`.
    """

    number: int | None
    raw: bytes
    is_rest: bool = False


@dataclass(frozen=True)
class RowBytes:
    """How a format splits its bytes into rows and a row into values.

    `rows` yields every byte of the file once. Both functions accept invalid files and never
    raise.
    """

    rows: Callable[[Readable], Iterator[Row]]
    values: Callable[[bytes], list[str]]

    def without(self, content: Readable, removed: Container[int]) -> Iterator[bytes]:
        """Yield the bytes of a file without some rows, in blocks."""
        block = bytearray()
        for row in self.rows(content):
            if row.number is None or row.number not in removed:
                block += row.raw
            if len(block) > _BLOCK_BYTES:
                yield bytes(block)
                block.clear()
        yield bytes(block)


def rest_of(content: Readable) -> Iterator[Row]:
    """Yield the remaining bytes of a file, which cannot be divided into rows."""
    while block := content.read(_BLOCK_BYTES):
        yield Row(None, block, is_rest=True)
