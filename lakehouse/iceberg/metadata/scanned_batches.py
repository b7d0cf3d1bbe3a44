"""Rows of a table as PyIceberg reads them, and the reason if only Spark can read them."""

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
    """Yield the rows of a scan in batches.

    :raises FilesUnsupported: if only Spark can read a file of the snapshot.
    """
    try:
        yield from scan.to_arrow_batch_reader()
    except (ValueError, NotImplementedError):
        reason = why_only_spark_reads(table, scan.snapshot_id)
        if not reason:
            raise
        name = ".".join(table.name())
        raise FilesUnsupported(
            f"{name} cannot be read without Spark: {reason}; expected data files in Parquet or ORC,"
            " without equality deletes.",
            next_step=(
                f"`lakehouse sql` reads its rows. Or declare file_format='parquet', and run"
                f" `lakehouse maintain {name}` to rewrite the files."
            ),
        ) from None


def why_only_spark_reads(table: "Table", snapshot_id: int | None = None) -> str:
    """Return why PyIceberg cannot read a snapshot (default: current); empty if it can."""
    for file in read_files(table, snapshot_id):
        if file.content == "equality deletes":
            return "it has equality deletes"
        readable = _READ_FORMATS if file.content == "data" else _READ_DELETES
        if file.format not in readable:
            role = "data files" if file.content == "data" else "delete files"
            return f"its {role} are {file.format.capitalize()}"
    return ""
