"""The bytes of a delivered file by its rows, whatever its format: some are left out, and all
others stay as they are.
"""

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from lakehouse.ingestion.readers.byte_source import Readable

_BLOCK_BYTES = 1 << 20
LeftOut = Container[int]
"""Numbers of rows, as they are counted in a content."""


class Row(NamedTuple):
    """Bytes of a file, with the line end behind them.

    `number` is that of the row as bronze counts, from 1 after the header, which is 0; None for
    what is no row: a byte-order mark, an empty line, or a part of a rest that cannot be
    divided into rows, which `is_rest` says.
    """

    number: int | None
    raw: bytes
    is_rest: bool = False


@dataclass(frozen=True)
class RowBytes:
    """How a format divides its bytes into rows, and a row into values, in order.

    `rows` yields every byte of the file once. Both take what is no valid file as far as they
    can, and refuse nothing.
    """

    rows: Callable[[Readable], Iterator[Row]]
    values: Callable[[bytes], list[str]]

    def without(self, content: Readable, left_out: Container[int]) -> Iterator[bytes]:
        """Yield the bytes of a file without those of the rows of some numbers, in blocks."""
        block = bytearray()
        for row in self.rows(content):
            if row.number is None or row.number not in left_out:
                block += row.raw
            if len(block) > _BLOCK_BYTES:
                yield bytes(block)
                block.clear()
        yield bytes(block)
