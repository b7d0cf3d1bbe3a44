"""Original row numbers of a file that lacks some of its delivered rows."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class RowNumbers:
    """Maps rows of a file to their numbers as delivered.

    `missing` are the numbers of removed rows. Numbers and positions count from 1 after the
    header, which is 0.
    """

    missing: tuple[int, ...] = ()

    @classmethod
    def without(cls, missing: Iterable[int]) -> "RowNumbers":
        return cls(tuple(sorted(set(missing))))

    def number(self, position: int) -> int:
        """Return the delivered number of the row at a current position."""
        return position + bisect_right(self._shifts, position)

    def position(self, number: int) -> int:
        """Return the current position of a row that is in the file."""
        return number - bisect_left(self.missing, number)

    def of_batch(self, first: int, rows: int) -> "pa.Int64Array":
        import numpy as np
        import pyarrow as pa

        positions = np.arange(first, first + rows, dtype=np.int64)
        if not self.missing:
            return pa.array(positions, pa.int64())
        shifts = np.searchsorted(np.array(self._shifts), positions, side="right")
        return pa.array(positions + shifts, pa.int64())

    @cached_property
    def _shifts(self) -> list[int]:
        """The positions at which the difference between number and position grows by one."""
        return [number - index for index, number in enumerate(self.missing)]
