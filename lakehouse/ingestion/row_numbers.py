"""The numbers of a file's rows as they were delivered, where the file lacks some of them now."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class RowNumbers:
    """Where each row of a file stood in the file as it was delivered.

    `missing` are the numbers of the rows that are no longer in it. Numbers and positions count
    from 1 after the header, which is 0.
    """

    missing: tuple[int, ...] = ()

    @classmethod
    def without(cls, missing: Iterable[int]) -> "RowNumbers":
        """Return those of a file that lacks some rows."""
        return cls(tuple(sorted(set(missing))))

    def number(self, position: int) -> int:
        """Return which number the row at a position of today's file had."""
        return position + bisect_right(self._shifts, position)

    def position(self, number: int) -> int:
        """Return where a row is in today's file, which has it, by its number."""
        return number - bisect_left(self.missing, number)

    def of_batch(self, first: int, rows: int) -> "pa.Int64Array":
        """Return the numbers of so many rows from a position on."""
        import numpy as np
        import pyarrow as pa

        positions = np.arange(first, first + rows, dtype=np.int64)
        if not self.missing:
            return pa.array(positions, pa.int64())
        shifts = np.searchsorted(np.array(self._shifts), positions, side="right")
        return pa.array(positions + shifts, pa.int64())

    @cached_property
    def _shifts(self) -> list[int]:
        """The positions from which on the numbers are one more ahead."""
        return [number - index for index, number in enumerate(self.missing)]
