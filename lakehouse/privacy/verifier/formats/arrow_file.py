"""A file as Arrow reads it from its begin to its end, and leaves it open."""

from io import IOBase
from typing import BinaryIO, cast

import pyarrow as pa


def left_open(file: BinaryIO) -> pa.PythonFile:
    """Return a file for Arrow, which closes what it is given."""
    return pa.PythonFile(cast(IOBase, _LeftOpen(file)), "r")


class _LeftOpen:
    """A file that Arrow closes, and that stays open."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self.read = file.read

    def close(self) -> None:
        """Do nothing."""
