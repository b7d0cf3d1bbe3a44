"""The formats that feeds are delivered in, and which reader reads each: a new format is a reader
in a file of its own, its line here, and its name among `FORMATS` of `tables/feed.py`.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from lakehouse.ingestion.readers.byte_source import Readable, unpacked
from lakehouse.ingestion.readers.csv import CsvReader
from lakehouse.ingestion.readers.csv_header import Header
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


def open_reader(
    feed: Feed, file_format: str, delivered: Readable, *, use_threads: bool
) -> FileReader:
    """Open a file of a format that the feed has.

    :raises FileRejected: as its reader does.
    """
    reader = READERS[file_format.removesuffix(".gz")]
    return reader(feed, unpacked(delivered, file_format), use_threads=use_threads)
