"""Read a delivered file into memory as an ingest would, without writing anything."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.ingestion.archive_names import evaluate_name, file_format
from lakehouse.ingestion.readers.byte_source import HashedBytes
from lakehouse.ingestion.readers.csv_header import plan_header
from lakehouse.ingestion.readers.file_formats import open_reader
from lakehouse.ingestion.staging.staged_files import Origin
from lakehouse.tables.feed import Feed

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class DeliveredRows:
    """The first rows of a file with their source columns, and the total row count."""

    rows: "pa.Table"
    total_rows: int
    added_columns: tuple[str, ...] = ()
    """Undeclared columns that the feed adds to its table."""


def read_delivered(feed: Feed, path: Path, limit: int) -> DeliveredRows:
    """Read a file and check all of it as an ingest does.

    :param limit: how many rows to keep.
    :raises FileRejected: it does not match the feed declaration.
    """
    import pyarrow as pa

    evaluate_name(feed, path.name)
    its_format = file_format(feed, path.name)
    assert its_format, "its name was checked before"
    modified_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    kept: list[pa.RecordBatch] = []
    total = 0
    with path.open("rb") as raw:
        content = HashedBytes(raw)
        # Only single-threaded reading knows the number of the invalid row.
        reader = open_reader(feed, its_format, content, use_threads=False)
        origin = Origin(feed, reader.header, path.name, modified_at, datetime.now(UTC))
        for batch in reader.batches():
            if total < limit:
                first = batch.slice(0, limit - total)
                numbers = pa.array(range(total + 1, total + 1 + first.num_rows), pa.int64())
                kept.append(origin.stamped(first, numbers))
            total += batch.num_rows
        sha256 = content.sha256()
    rows = pa.Table.from_batches(kept, origin.schema)
    hashes = pa.repeat(pa.scalar(sha256, pa.string()), rows.num_rows)
    return DeliveredRows(
        rows.append_column("_source_sha256", hashes), total, reader.header.added
    )


def without_rows(feed: Feed) -> DeliveredRows:
    """Return an empty result with the columns that the feed declares."""
    import pyarrow as pa

    now = datetime.now(UTC)
    schema = Origin(feed, plan_header(feed, feed.column_names), "", now, now).schema
    return DeliveredRows(
        schema.append(pa.field("_source_sha256", pa.string())).empty_table(), 0
    )
