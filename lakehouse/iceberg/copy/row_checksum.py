"""Row count and order-independent checksum of a snapshot, streamed by PyIceberg; no JVM."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.scanned_batches import why_only_spark_reads

if TYPE_CHECKING:
    from pyiceberg.table import Table


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
    """Whether PyIceberg can read the rows of a snapshot."""
    return not why_only_spark_reads(table, snapshot_id)


def row_checksum(table: "Table", snapshot_id: int) -> RowChecksum:
    """Return the sum of the hashes of all rows of a snapshot, modulo 2^64."""
    import polars as pl

    rows, total = 0, 0
    with table.scan(snapshot_id=snapshot_id).to_arrow_batch_reader() as batches:
        for batch in batches:
            rows += batch.num_rows
            frame = pl.DataFrame(batch)
            total += sum(frame.hash_rows().to_list())
    return RowChecksum(rows, total % (1 << 64))
