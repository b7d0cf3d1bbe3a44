"""The formats that feeds are delivered in, and which reader reads each: a new format is a reader
in a file of its own, its line here, and its name among `FORMATS` of `tables/feed.py`. Its line
in `ROW_BYTES` says how rows are left out of its files.
"""

from collections.abc import Callable, Container, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, Protocol

from lakehouse.errors import LakehouseError
from lakehouse.ingestion.readers.byte_source import Readable, packed, unpacked
from lakehouse.ingestion.readers.csv import CsvReader
from lakehouse.ingestion.readers.csv_header import Header
from lakehouse.ingestion.readers.csv_rows import csv_row_bytes
from lakehouse.ingestion.readers.row_bytes import RowBytes
from lakehouse.tables.feed import Feed

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
        """Give the rows in order, in batches of the strings of the header's `columns`; none of
        them is empty.
        """


READERS: Mapping[str, type[FileReader]] = {"csv": CsvReader}
"""By the format's name; a compressed file, such as `csv.gz`, is read as what is in it."""

_READERS_OF_LANDED = {"csv": partial(CsvReader, is_strict=False)}
"""What reads files that landed before their format was looked at so closely, where that is
another: their rows are numbered as they were then.
"""

ROW_BYTES: Mapping[str, Callable[[str], RowBytes]] = {"csv": csv_row_bytes}
"""By the format's name, what gives the division of a file with a delimiter; of a format that is
not here no row can be left out.
"""


def open_reader(
    feed: Feed, file_format: str, delivered: Readable, *, use_threads: bool
) -> FileReader:
    """Open a file of a format that the feed has.

    :raises FileRejected: as its reader does.
    """
    reader = READERS[file_format.removesuffix(".gz")]
    return reader(feed, unpacked(delivered, file_format), use_threads=use_threads)


def open_landed(
    feed: Feed, file_format: str, landed: Readable, *, use_threads: bool
) -> FileReader:
    """Open a file that may have landed at any time.

    :raises FileRejected: as its reader does.
    """
    name = file_format.removesuffix(".gz")
    reader = _READERS_OF_LANDED.get(name, READERS[name])
    return reader(feed, unpacked(landed, file_format), use_threads=use_threads)


def row_bytes(file_format: str, delimiter: str = ",") -> RowBytes:
    """Return how rows of a format are told apart in its bytes.

    :param delimiter: that of the feed, for formats of text.
    :raises LakehouseError: the format does not say so.
    """
    name = file_format.removesuffix(".gz")
    if name not in ROW_BYTES:
        raise LakehouseError(
            f"No row can be left out of a file of the format {name!r}; expected one of"
            f" {', '.join(ROW_BYTES)}.",
            next_step="Give it a line in ROW_BYTES of ingestion/readers/formats.py.",
        )
    return ROW_BYTES[name](delimiter)


def write_without_rows(
    file_format: str,
    delivered: Readable,
    left_out: Container[int],
    target: BinaryIO,
    *,
    delimiter: str = ",",
) -> None:
    """Write a file without some of its rows, compressed as it was; all other bytes stay as
    they are.

    The same rows left out of the same content give the same bytes.

    :param left_out: numbers of rows, as they are counted in this content.
    :raises LakehouseError: the format does not say how.
    """
    rows = row_bytes(file_format, delimiter)
    with packed(target, file_format) as content:
        for block in rows.without(unpacked(delivered, file_format), left_out):
            content.write(block)
