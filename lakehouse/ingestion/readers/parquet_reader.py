"""Read the rows of a Parquet file, in the types that the feed declares."""

from collections.abc import Iterator
from functools import partial
from typing import IO, TYPE_CHECKING, Any, BinaryIO

from lakehouse.ingestion.readers.arrow_types import TypedReader, reject_damaged_file
from lakehouse.ingestion.readers.byte_source import Readable, spooled
from lakehouse.ingestion.readers.row_bytes import RemovedRows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

_call = partial(reject_damaged_file, "Parquet")
_BATCH_ROWS = 8192
_WRITTEN_ROWS = 1 << 16


class ParquetReader(TypedReader):
    """One file's columns and rows."""

    def open(self, copy: IO[bytes]) -> list[str]:
        self._file = open_parquet(copy)
        return self._file.schema_arrow.names

    def read(self, fields: list[str]) -> "Iterator[list[pa.Array[Any]]]":
        batches = self._file.iter_batches(
            _BATCH_ROWS, columns=fields, use_threads=self._use_threads
        )
        while (batch := _call(lambda: next(batches, None))) is not None:
            yield [batch.column(field) for field in fields]


def open_parquet(file: "IO[bytes] | BinaryIO") -> "ParquetFile":
    """Open a seekable file."""
    from pyarrow import parquet

    return _call(
        lambda: parquet.ParquetFile(
            file,
            pre_buffer=False,
            # INT96 has nanoseconds and years that do not fit 64 bits of nanoseconds.
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,
        )
    )


def write_parquet_without(content: Readable, removed: RemovedRows, target: Any) -> None:
    """Write a file without some rows, with the same columns and compression but new row groups."""
    import pyarrow as pa
    from pyarrow import parquet

    with spooled(content) as copy:
        file = open_parquet(copy)
        codecs = _codecs(file)
        first_row = 1
        with parquet.ParquetWriter(target, file.schema_arrow, compression=codecs) as writer:
            for batch in file.iter_batches(_WRITTEN_ROWS):
                rows = range(first_row, first_row + batch.num_rows)
                stays = pa.array([row not in removed for row in rows], pa.bool_())
                writer.write_batch(batch.filter(stays))
                first_row += batch.num_rows


def _codecs(file: "ParquetFile") -> Any:
    if not file.metadata.num_row_groups:
        return "snappy"
    group = file.metadata.row_group(0)
    columns = (group.column(at) for at in range(group.num_columns))
    writable = ("SNAPPY", "GZIP", "BROTLI", "LZ4", "ZSTD", "UNCOMPRESSED")
    return {
        column.path_in_schema: (
            "none" if column.compression == "UNCOMPRESSED" else column.compression.lower()
        )
        if column.compression in writable
        else "snappy"
        for column in columns
    }
