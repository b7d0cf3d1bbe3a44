"""Row count and order-independent checksum of a snapshot, streamed by PyIceberg; no JVM."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.scanned_batches import why_only_spark_reads

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from pyiceberg.table import Table

_BITS = 64
_NULL = 0x9E3779B97F4A7C15
_FACTOR = 0xBF58476D1CE4E5B9
_HASH_KEY = "lakehouse_copies"
"""Sixteen characters, as pandas' hash requires."""


@dataclass(frozen=True)
class RowChecksum:
    """The row count and the checksum of a snapshot."""

    rows: int
    total: int

    @property
    def text(self) -> str:
        """The checksum as text."""
        return f"{self.total:016x}"


def has_readable_rows(table: "Table", snapshot_id: int) -> bool:
    """Whether PyIceberg can read the rows of a snapshot: False for Avro files and equality
    deletes.
    """
    return not why_only_spark_reads(table, snapshot_id)


def row_checksum(table: "Table", snapshot_id: int) -> RowChecksum:
    """Read all rows of a snapshot, and compute their checksum.

    The sum of the row hashes modulo 2^64 counts duplicate rows.
    """
    rows, total = 0, 0
    with table.scan(snapshot_id=snapshot_id).to_arrow_batch_reader() as batches:
        for batch in batches:
            rows += batch.num_rows
            total += int(_row_hashes(batch).sum(dtype="uint64"))
    return RowChecksum(rows, total % (1 << _BITS))


def _row_hashes(batch: "pa.RecordBatch") -> "np.ndarray[Any, Any]":
    import numpy as np
    from pandas.util import hash_array

    hashes = np.zeros(batch.num_rows, dtype="uint64")
    for column in batch.columns:
        # The column order counts: the hash is mixed before the next column is added.
        hashes = hash_array(hashes * np.uint64(_FACTOR) + _column_hashes(column))
    return hashes


def _column_hashes(column: "pa.Array[Any]") -> "np.ndarray[Any, Any]":
    import numpy as np
    from pandas.util import hash_array

    values = _hashable(column)
    hashes: np.ndarray[Any, Any] = hash_array(values, hash_key=_HASH_KEY, categorize=False)
    hashes[column.is_null().to_numpy(zero_copy_only=False)] = np.uint64(_NULL)
    return hashes


def _hashable(column: "pa.Array[Any]") -> "np.ndarray[Any, Any]":
    """Return the values of a column as 8-byte integers, text or bytes; NULL has an arbitrary
    value.
    """
    import numpy as np
    import pyarrow as pa
    from pyarrow import types

    kind = column.type
    if types.is_boolean(kind) or types.is_integer(kind):
        return _filled(column, pa.int64()).view("uint64")
    if types.is_floating(kind):
        return _filled(column, pa.float64()).view("uint64")
    if types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return _filled(column.view(width), pa.int64()).view("uint64")
    values = np.empty(len(column), dtype=object)
    is_text = types.is_string(kind) or types.is_large_string(kind)
    is_plain = is_text or types.is_binary(kind) or types.is_large_binary(kind)
    for at, value in enumerate(column.to_pylist()):
        values[at] = value if is_plain and value is not None else repr(value)
    return values


def _filled(column: "pa.Array[Any]", kind: Any) -> "np.ndarray[Any, Any]":
    values = column.cast(kind, safe=False).fill_null(0)
    return values.to_numpy(zero_copy_only=False)
