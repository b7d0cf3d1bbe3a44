"""Row counts of a quarantine by rule and file, read without a JVM."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.scanned_batches import scanned_batches

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import Table

_READ = ("_reasons", "_source_file", "_quarantined_at")


@dataclass(frozen=True)
class QuarantinedRows:
    """The rows of a quarantine at one snapshot."""

    rows: int = 0
    by_rule: Mapping[str, int] = field(default_factory=dict)
    """Number of rows that break each rule, in descending order; a row can break several."""
    newest_at: datetime | None = None
    """When the newest rows were quarantined."""
    newest_files: Mapping[str, int] = field(default_factory=dict)
    """The delivered files that those came with, and how many with each."""


def quarantined_rows(table: "Table") -> QuarantinedRows:
    """Count the rows of a quarantine, one batch at a time; of each only why, whence and when is
    read.

    :raises FilesUnsupported: where only Spark reads its rows.
    """
    import pyarrow.compute as pc

    by_rule: Counter[str] = Counter()
    newest: Counter[str] = Counter()
    newest_at: datetime | None = None
    rows = 0
    for batch in scanned_batches(table, table.scan(selected_fields=_READ)):
        rows += batch.num_rows
        by_rule.update(_counts(pc.list_flatten(batch.column("_reasons"))))
        at = _latest(batch)
        if at is not None and (newest_at is None or at > newest_at):
            newest_at, newest = at, Counter()
        if at is not None and at == newest_at:
            newest.update(_counts(_of(batch, at).column("_source_file")))
    return QuarantinedRows(
        rows, dict(by_rule.most_common()), newest_at, dict(newest.most_common())
    )


def _latest(batch: "pa.RecordBatch") -> datetime | None:
    import pyarrow.compute as pc

    latest: datetime | None = pc.max(batch.column("_quarantined_at")).as_py()
    return latest


def _of(batch: "pa.RecordBatch", timestamp: datetime) -> "pa.RecordBatch":
    import pyarrow.compute as pc

    return batch.filter(pc.equal(batch.column("_quarantined_at"), _scalar(batch, timestamp)))


def _scalar(batch: "pa.RecordBatch", timestamp: datetime) -> "pa.Scalar[Any]":
    import pyarrow as pa

    scalar: pa.Scalar[Any] = pa.scalar(timestamp, batch.column("_quarantined_at").type)
    return scalar


def _counts(values: "pa.Array[Any]") -> Counter[str]:
    import pyarrow.compute as pc

    counts = pc.value_counts(values)
    texts = map(str, counts.field("values").to_pylist())
    return Counter(dict(zip(texts, counts.field("counts").to_pylist(), strict=True)))
