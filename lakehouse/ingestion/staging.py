"""A delivered file as staged Parquet: what was checked is what Spark reads.

    <home>/staging/<feed>/<ingest id>/rows/_source_sha256=<hash>/<number>.parquet

The hash of a file is known once it was read; so it stands in the path, which Spark reads as a
column.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from lakehouse.errors import FileRejected
from lakehouse.ingestion.archive_names import file_format
from lakehouse.ingestion.readers.byte_source import HashedBytes
from lakehouse.ingestion.readers.csv_header import Header
from lakehouse.ingestion.readers.formats import open_reader
from lakehouse.storage.object_store import ObjectStore, StoredObject
from lakehouse.tables.feed import Feed

if TYPE_CHECKING:
    import pyarrow as pa

_DICTIONARY_BYTES = 65_536
_WRITTEN_VALUES = 1 << 20
"""Fields of the rows that are stamped and written at once: a file's name, 255 bytes or more,
stands in each row.
"""
_reading_again = Lock()


@dataclass(frozen=True)
class StagedFile:
    """A delivered file that is what its feed declares, with its rows in `path`."""

    stored: StoredObject
    source_file: str
    sha256: str
    rows: int
    path: Path
    added_columns: tuple[str, ...] = ()


def stage(
    feed: Feed,
    store: ObjectStore,
    stored: StoredObject,
    folder: Path,
    number: int,
    ingested_at: datetime,
    progress: Callable[[int], None],
) -> StagedFile:
    """Read a file once: hash it, check it and write its rows as Parquet below `folder`.

    A file that is refused is read again, by one thread, for the number of the row; it is seldom
    and ends early. So is one with a row longer than a block. One file at a time is, since the
    blocks are larger then.

    :raises FileRejected: it is not what the feed declares; no Parquet of it stays.
    :raises FileNotFoundError: it went away.
    """
    target = folder / f"{number:06}.parquet"
    try:
        return _convert(feed, store, stored, target, ingested_at, progress, use_threads=True)
    except FileRejected:
        with _reading_again:
            return _convert(
                feed, store, stored, target, ingested_at, _ignore_progress, use_threads=False
            )
    finally:
        target.unlink(missing_ok=True)


def _ignore_progress(_: int) -> None:
    """The second reading of a file is no progress."""


def _convert(
    feed: Feed,
    store: ObjectStore,
    stored: StoredObject,
    target: Path,
    ingested_at: datetime,
    progress: Callable[[int], None],
    *,
    use_threads: bool,
) -> StagedFile:
    source_file = stored.key.removeprefix(feed.inbox)
    its_format = file_format(feed, source_file)
    assert its_format, "its name was looked at before"
    with store.open(stored.key) as raw:
        delivered = HashedBytes(raw, progress)
        reader = open_reader(feed, its_format, delivered, use_threads=use_threads)
        origin = _Origin(feed, reader.header, source_file, stored.modified_at, ingested_at)
        rows = _write(target, origin, reader.batches())
        sha256 = delivered.sha256()
    path = target.parent / "rows" / f"_source_sha256={sha256}" / target.name
    path.parent.mkdir(parents=True, exist_ok=True)
    target.rename(path)
    return StagedFile(stored, source_file, sha256, rows, path, reader.header.added)


def _write(target: Path, origin: "_Origin", batches: "Iterator[pa.RecordBatch]") -> int:
    from pyarrow import parquet

    rows = 0
    # Statistics would be read by nobody: each row of a staged file is landed. It is read once
    # and removed, so that what is fast counts more than what is small; the dictionary of a
    # column with many values would be given up in the end.
    with parquet.ParquetWriter(
        target,
        origin.schema,
        compression="snappy",
        dictionary_pagesize_limit=_DICTIONARY_BYTES,
        write_statistics=False,
    ) as writer:
        for batch in _pieces(batches, len(origin.schema)):
            writer.write_batch(origin.stamped(batch, first_row=rows + 1))
            rows += batch.num_rows
    return rows


def _pieces(batches: "Iterator[pa.RecordBatch]", columns: int) -> "Iterator[pa.RecordBatch]":
    """Yield the same rows in batches of no more than so many values."""
    most_rows = max(1, _WRITTEN_VALUES // columns)
    for batch in batches:
        for start in range(0, batch.num_rows, most_rows):
            yield batch.slice(start, most_rows)


@dataclass(frozen=True)
class _Origin:
    feed: Feed
    header: Header
    source_file: str
    modified_at: datetime
    ingested_at: datetime

    @property
    def schema(self) -> "pa.Schema":
        import pyarrow as pa

        moment = pa.timestamp("us", tz="UTC")
        names = (*self.feed.column_names, *self.header.added)
        delivered: list[tuple[str, pa.DataType]] = [(name, pa.string()) for name in names]
        stamps: list[tuple[str, pa.DataType]] = [
            ("_source_file", pa.string()),
            ("_source_modified_at", moment),
            ("_source_row", pa.int64()),
            ("_ingested_at", moment),
        ]
        return pa.schema([*delivered, *stamps])

    def stamped(self, batch: "pa.RecordBatch", first_row: int) -> "pa.RecordBatch":
        """Return the rows with all of the feed's columns in its order, and their source."""
        import pyarrow as pa

        rows = batch.num_rows
        moment = pa.timestamp("us", tz="UTC")
        source = {
            "_source_file": pa.repeat(pa.scalar(self.source_file, pa.string()), rows),
            "_source_modified_at": pa.repeat(pa.scalar(self.modified_at, moment), rows),
            # It is newer than the stubs.
            "_source_row": pa.arange(first_row, first_row + rows),  # type: ignore[attr-defined]
            "_ingested_at": pa.repeat(pa.scalar(self.ingested_at, moment), rows),
        }
        read = dict(zip(batch.schema.names, batch.columns, strict=True)) | source
        columns = [
            read[field.name] if field.name in read else pa.nulls(rows, field.type)
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)
