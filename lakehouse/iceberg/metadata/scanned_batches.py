"""The rows of a table as PyIceberg reads them, and why it cannot where only Spark does."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lakehouse.errors import FilesUnsupported
from lakehouse.iceberg.metadata.manifests import read_files

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import DataScan, Table

_READ_FORMATS = {"parquet", "orc"}
_READ_DELETES = {*_READ_FORMATS, "puffin"}


def scanned_batches(table: "Table", scan: "DataScan") -> "Iterator[pa.RecordBatch]":
    """Yield the rows of a scan, one batch at a time.

    :raises FilesUnsupported: where a file of the snapshot is one that only Spark reads.
    """
    try:
        yield from scan.to_arrow_batch_reader()
    except (ValueError, NotImplementedError):
        why = why_only_spark_reads(table, scan.snapshot_id)
        if not why:
            raise
        name = ".".join(table.name())
        raise FilesUnsupported(
            f"{name} cannot be read without Spark: {why}; expected data files in Parquet or ORC,"
            " without equality deletes.",
            next_step=(
                f"`lakehouse sql` reads its rows. Declare file_format='parquet', and once"
                f" `lakehouse maintain {name}` has compacted it the files are read again."
            ),
        ) from None


def why_only_spark_reads(table: "Table", snapshot_id: int | None = None) -> str:
    """Say why PyIceberg does not read the rows of a snapshot, the current one unless another is
    named; nothing where it does.
    """
    for file in read_files(table, snapshot_id):
        if file.content == "equality deletes":
            return "rows of it are deleted by their values"
        readable = _READ_FORMATS if file.content == "data" else _READ_DELETES
        if file.format not in readable:
            of = "data files" if file.content == "data" else "delete files"
            return f"{of} of it are {file.format.capitalize()}"
    return ""
