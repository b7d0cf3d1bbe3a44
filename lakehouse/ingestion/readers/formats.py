"""The formats that feeds are delivered in, and which reader reads each: a new format is a reader
in a file of its own, its line here, and its name among `FORMATS` of `tables/feed.py`. Its line
in `ROW_BYTES` says how its files are searched as bytes, and that in `WRITERS` how rows are left
out of it where its bytes have no rows.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, Protocol

from lakehouse.errors import LakehouseError
from lakehouse.ingestion.readers.avro_reader import AvroReader, write_avro_without
from lakehouse.ingestion.readers.byte_source import Readable, Writable, packed, unpacked
from lakehouse.ingestion.readers.csv import CsvReader
from lakehouse.ingestion.readers.csv_header import Header
from lakehouse.ingestion.readers.csv_rows import csv_row_bytes
from lakehouse.ingestion.readers.json_reader import (
    JsonReader,
    json_row_bytes,
    write_json_without,
)
from lakehouse.ingestion.readers.parquet_reader import ParquetReader, write_parquet_without
from lakehouse.ingestion.readers.row_bytes import LeftOut, RowBytes
from lakehouse.tables.feed import Feed, uncompressed

if TYPE_CHECKING:
    import pyarrow as pa


class FileReader(Protocol):
    """One file's columns and rows.

    `use_threads=False` may be slower, and knows the number of a row that it refuses.

    :raises FileRejected: from the constructor for what is wrong with the columns, from
        `batches` for the rows.
    """

    header: Header

    def __init__(self, feed: Feed, content: Readable, *, use_threads: bool) -> None:
        """Read as much as tells the columns."""

    def batches(self) -> "Iterator[pa.RecordBatch]":
        """Give the rows in order, in batches of the header's `columns` in the types that the
        feed declares; none of them is empty.
        """


READERS: Mapping[str, type[FileReader]] = {
    "csv": CsvReader,
    "jsonl": JsonReader,
    "json": JsonReader,
    "parquet": ParquetReader,
    "avro": AvroReader,
}
"""By the format's name; a compressed file, such as `csv.gz`, is read as what is in it."""

_READERS_OF_LANDED = {"csv": partial(CsvReader, is_strict=False)}
"""What reads files that landed before their format was looked at so closely, where that is
another: their rows are numbered as they were then.
"""

ROW_BYTES: Mapping[str, Callable[[str], RowBytes]] = {
    "csv": csv_row_bytes,
    "jsonl": json_row_bytes,
    "json": json_row_bytes,
}
"""By the format's name, what gives the division of a file with a delimiter; a format that is not
here cannot be searched as bytes.
"""

WRITERS: Mapping[str, Callable[[Readable, LeftOut, Writable], None]] = {
    "jsonl": write_json_without,
    "json": write_json_without,
    "parquet": write_parquet_without,
    "avro": write_avro_without,
}
"""By the format's name, what writes a file without some rows; others are written by their bytes."""


def open_reader(
    feed: Feed, file_format: str, delivered: Readable, *, use_threads: bool
) -> FileReader:
    """Open a file of a format that the feed has.

    :raises FileRejected: as its reader does.
    """
    reader = READERS[uncompressed(file_format)]
    return reader(feed, unpacked(delivered, file_format), use_threads=use_threads)


def open_landed(
    feed: Feed, file_format: str, landed: Readable, *, use_threads: bool
) -> FileReader:
    """Open a file that may have landed at any time.

    :raises FileRejected: as its reader does.
    """
    name = uncompressed(file_format)
    reader = _READERS_OF_LANDED.get(name, READERS[name])
    return reader(feed, unpacked(landed, file_format), use_threads=use_threads)


def row_bytes(file_format: str, delimiter: str = ",") -> RowBytes:
    """Return how rows of a format are told apart in its bytes.

    :param delimiter: that of the feed, for formats of text.
    :raises LakehouseError: the format does not say so.
    """
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
    left_out: LeftOut,
    target: BinaryIO,
    *,
    delimiter: str = ",",
) -> None:
    """Write a file without some of its rows, compressed as it was; all other rows stay as they
    are, and in a format of text all other bytes.

    The same rows left out of the same content give the same bytes.

    :param left_out: numbers of rows, as they are counted in this content.
    :raises LakehouseError: the format does not say how.
    """
    writer = WRITERS.get(uncompressed(file_format))
    with packed(target, file_format) as content:
        if writer:
            writer(unpacked(delivered, file_format), left_out, content)
            return
        rows = row_bytes(file_format, delimiter)
        for block in rows.without(unpacked(delivered, file_format), left_out):
            content.write(block)
