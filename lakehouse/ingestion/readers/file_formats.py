"""The file formats of feeds and their readers.

To add a format, write a reader in its own file and add it to `READERS` and to `FORMATS` in
`tables/feed.py`. An entry in `ROW_BYTES` defines how its bytes are searched. An entry in
`WRITERS` defines how rows are removed if its bytes have no rows.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, BinaryIO, Protocol

from lakehouse.errors import LakehouseError
from lakehouse.ingestion.readers.avro_reader import AvroReader, write_avro_without
from lakehouse.ingestion.readers.byte_source import Readable, Writable
from lakehouse.ingestion.readers.compression import packed, unpacked
from lakehouse.ingestion.readers.csv import CsvReader
from lakehouse.ingestion.readers.csv_header import Header
from lakehouse.ingestion.readers.csv_rows import csv_row_bytes
from lakehouse.ingestion.readers.json_reader import (
    JsonReader,
    json_row_bytes,
    write_json_without,
)
from lakehouse.ingestion.readers.parquet_reader import ParquetReader, write_parquet_without
from lakehouse.ingestion.readers.row_bytes import RemovedRows, RowBytes
from lakehouse.tables.feed import Feed, uncompressed

if TYPE_CHECKING:
    import pyarrow as pa


class FileReader(Protocol):
    """Reads a file's columns and rows; without threads maybe slower, but it knows row numbers."""

    header: Header

    def __init__(self, feed: Feed, content: Readable, *, use_threads: bool) -> None:
        """Read as much as needed to determine the columns."""

    def batches(self) -> "Iterator[pa.RecordBatch]":
        """Yield the rows in order, in non-empty batches of the header's `columns` with the
        declared types.
        """


READERS: Mapping[str, type[FileReader]] = {
    "csv": CsvReader,
    "jsonl": JsonReader,
    "json": JsonReader,
    "parquet": ParquetReader,
    "avro": AvroReader,
}
"""Readers by format; a compressed file, such as `csv.gz`, uses the reader of its content."""

ROW_BYTES: Mapping[str, Callable[[str], RowBytes]] = {
    "csv": csv_row_bytes,
    "jsonl": json_row_bytes,
    "json": json_row_bytes,
}
"""Row splitters by format; other formats cannot be searched as bytes."""

WRITERS: Mapping[str, Callable[[Readable, RemovedRows, Writable], None]] = {
    "jsonl": write_json_without,
    "json": write_json_without,
    "parquet": write_parquet_without,
    "avro": write_avro_without,
}
"""Writers that remove rows, by format; other formats are rewritten row by row as bytes."""


def open_reader(
    feed: Feed, file_format: str, delivered: Readable, *, use_threads: bool
) -> FileReader:
    """Open a file of one of the feed's formats, or reject it."""
    reader = READERS[uncompressed(file_format)]
    return reader(feed, unpacked(delivered, file_format), use_threads=use_threads)


def row_bytes(file_format: str, delimiter: str = ",") -> RowBytes:
    """Return how a format's bytes are split into rows, or raise if they cannot be."""
    name = uncompressed(file_format)
    if name not in ROW_BYTES:
        raise LakehouseError(
            f"it cannot be read as {name}, and no row is found in the bytes of that format;"
            f" expected a complete file, or one of {', '.join(ROW_BYTES)}"
        )
    return ROW_BYTES[name](delimiter)


def write_without_rows(
    file_format: str,
    delivered: Readable,
    removed: RemovedRows,
    target: BinaryIO,
    *,
    delimiter: str = ",",
) -> None:
    """Write a file without some of its rows, deterministically and with the same compression.
    In text formats other bytes do not change.
    """
    writer = WRITERS.get(uncompressed(file_format))
    with packed(target, file_format) as content:
        if writer:
            writer(unpacked(delivered, file_format), removed, content)
            return
        rows = row_bytes(file_format, delimiter)
        for block in rows.without(unpacked(delivered, file_format), removed):
            content.write(block)
