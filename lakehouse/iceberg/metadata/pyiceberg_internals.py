"""A fault of PyIceberg that is mended where it is: its compiled decoder reads doubles in single
precision.

Doubles stand in manifests as the values of partitions. 1.1 came out as 1.100000023841858, so
that a read of that partition held no row.

`test_pyiceberg_internals.py` fails where another version than `LOOKED_AT` is installed. Then look
whether its decoder reads doubles whole by now: this module can go in that case.
"""

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyiceberg.avro.decoder import BinaryDecoder
    from pyiceberg.avro.reader import DoubleReader

LOOKED_AT = "0.12.0"
_DOUBLE = struct.Struct("<d")


def read_doubles_whole() -> None:
    """Let PyIceberg read doubles in double precision, in this process from here on."""
    from pyiceberg.avro.reader import DoubleReader

    DoubleReader.read = _read_double  # type: ignore[method-assign, assignment]  # the mend


def _read_double(_: "DoubleReader", decoder: "BinaryDecoder") -> float:
    value: float = _DOUBLE.unpack(decoder.read(_DOUBLE.size))[0]
    return value
