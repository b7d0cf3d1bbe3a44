"""Convert a delivered file to staged Parquet, so that Spark reads exactly what was checked."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

from lakehouse.errors import FileRejected
from lakehouse.ingestion.archive_names import file_format
from lakehouse.ingestion.found_rows import FoundRows, RowFinder
from lakehouse.ingestion.readers.arrow_types import column_types, with_texts
from lakehouse.ingestion.readers.byte_source import HashedBytes
from lakehouse.ingestion.readers.csv_header import Header
from lakehouse.ingestion.readers.file_formats import open_reader
from lakehouse.ingestion.rewrite_file import Rewriting, RowNumbers
from lakehouse.ingestion.rewritten_files import KnownContent
from lakehouse.ingestion.staging.staged_rows import StagedRows
from lakehouse.storage.object_store import ObjectStore, StoredObject
from lakehouse.tables.feed import Feed

if TYPE_CHECKING:
    import pyarrow as pa

_DICTIONARY_BYTES = 65_536
_WRITTEN_VALUES = 1 << 20
"""Maximum number of values written in one batch: each row repeats the file name of up to 255
bytes.
"""
_UNKNOWN = KnownContent("")
_reading_again = Lock()


@dataclass(frozen=True)
class StagedFile:
    """A valid delivered file, and the name of its staged rows."""

    stored: StoredObject
    source_file: str
    sha256: str
    """The hash of its original content."""
    rows: int
    name: str
    added_columns: tuple[str, ...] = ()
    suppressed_rows: int = 0
    """Rows of erased data subjects in the delivery that are not staged."""
    forms: frozenset[str] = frozenset()
    """The hashes of its content, as delivered and as rewritten."""


@dataclass(frozen=True)
class Converted:
    """The result of reading a file: its row count and the numbers of suppressed rows."""

    sha256: str
    rows: int
    suppressed: frozenset[int]
    added_columns: tuple[str, ...]


@dataclass(frozen=True)
class FileConverter:
    """Reads delivered files as streams, checks them and writes Parquet, in any process."""

    store: ObjectStore
    feed: Feed
    ingested_at: datetime
    suppressed: RowFinder

    def convert(
        self,
        stored: StoredObject,
        target: Path,
        known: KnownContent = _UNKNOWN,
        stop: Event | None = None,
    ) -> Converted:
        """Write the rows of a file, without rows that an erasure request removed.

        An invalid file is read a second time with one thread, to find the row number; this is
        rare and ends early. A file with a row longer than a block is also read again. Only one
        file at a time is read again, since its blocks are larger.

        :raises FileRejected: the file does not match the feed declaration.
        :raises FileNotFoundError: the file was removed.
        """
        plan = _RowPlan(known, self.suppressed)
        try:
            return self._read(stored, target, plan, stop, use_threads=True)
        except FileRejected:
            with _reading_again:
                return self._read(stored, target, plan, stop, use_threads=False)

    def _read(
        self,
        stored: StoredObject,
        target: Path,
        plan: "_RowPlan",
        stop: Event | None,
        *,
        use_threads: bool,
    ) -> Converted:
        source_file = stored.key.removeprefix(self.feed.inbox)
        its_format = file_format(self.feed, source_file)
        assert its_format, "its name was checked before"
        with self.store.open(stored.key) as raw:
            delivered = HashedBytes(raw, stop)
            reader = open_reader(self.feed, its_format, delivered, use_threads=use_threads)
            modified_at = plan.known.modified_at(stored.modified_at)
            origin = Origin(
                self.feed, reader.header, source_file, modified_at, self.ingested_at
            )
            rows, suppressed = _write(target, origin, reader.batches(), plan)
            sha256 = delivered.sha256()
        return Converted(sha256, rows, frozenset(suppressed), reader.header.added)


@dataclass(frozen=True)
class Staging:
    """Stages the files of one ingest.

    `rows` is what Spark reads. `suppressed` finds the rows of erased data subjects. These rows
    and the rows removed according to the ledger are not staged, and the file is rewritten
    without them.
    """

    rewriting: Rewriting
    rows: StagedRows
    ingested_at: datetime
    suppressed: RowFinder

    def stage(
        self, stored: StoredObject, number: int, stop: Event | None = None
    ) -> StagedFile | None:
        """Read a file once: hash it, check it and write its rows as Parquet. A file that was
        rewritten, or must be, is read again; None if it changed in between.
        """
        target = self.rewriting.folder / f"{number:06}.parquet"
        convert = self.converter.convert
        try:
            converted = convert(stored, target, stop=stop)
            known = self.rewriting.ledger.find(stored.key, converted.sha256)
            if known.is_erased:
                raise _erased_file()
            if known.missing or known.erased:
                sha256 = converted.sha256
                converted = convert(stored, target, known, stop)
                if converted.sha256 != sha256:
                    return None
            return self._file(stored, number, target, converted, known)
        finally:
            target.unlink(missing_ok=True)

    @property
    def converter(self) -> FileConverter:
        return FileConverter(
            self.rewriting.store, self.rewriting.feed, self.ingested_at, self.suppressed
        )

    def staged_by_executor(
        self, stored: StoredObject, number: int, converted: Converted
    ) -> StagedFile | None:
        """Return a file that an executor staged, or None and remove it if the ledger has its
        content.
        """
        name = self.rows.name(converted.sha256, number, by_executor=True)
        if self.rewriting.ledger.find(stored.key, converted.sha256) != KnownContent(
            converted.sha256
        ):
            self.rows.remove(name)
            return None
        return StagedFile(
            stored,
            stored.key.removeprefix(self.rewriting.feed.inbox),
            converted.sha256,
            converted.rows,
            name,
            converted.added_columns,
            forms=frozenset({converted.sha256}),
        )

    def _file(
        self,
        stored: StoredObject,
        number: int,
        target: Path,
        converted: Converted,
        known: KnownContent,
    ) -> StagedFile | None:
        """Rewrite the file without the suppressed rows, and publish its staged rows."""
        item: StoredObject | None = stored
        forms = known.forms | {converted.sha256}
        if converted.suppressed:
            found = FoundRows(converted.sha256, converted.rows)
            item = self.rewriting.leave_out(stored, found, known, converted.suppressed)
            forms |= self.rewriting.ledger.find(stored.key, known.sha256).forms
        if item is None:
            return None
        name = self.rows.name(known.sha256, number)
        self.rows.put(target, name)
        return StagedFile(
            item,
            stored.key.removeprefix(self.rewriting.feed.inbox),
            known.sha256,
            converted.rows - len(converted.suppressed),
            name,
            converted.added_columns,
            len(known.missing | converted.suppressed),
            forms,
        )


@dataclass(frozen=True)
class _RowPlan:
    """How the rows of a file are numbered, and which are not staged."""

    known: KnownContent
    suppressed: RowFinder

    @cached_property
    def numbers(self) -> RowNumbers:
        return RowNumbers.without(self.known.missing)

    @cached_property
    def erased(self) -> frozenset[int]:
        """The numbers of rows in this content that a request removed from the delivery."""
        return self.known.erased - self.known.missing

    def find_suppressed(self, batch: "pa.RecordBatch", numbers: "pa.Int64Array") -> list[int]:
        """Return the sorted positions of the rows of a batch that are not staged."""
        places = set(self.suppressed.of_batch(with_texts(batch, self.suppressed.columns)))
        if self.erased:
            for place, number in enumerate(numbers.to_pylist()):
                if number in self.erased:
                    places.add(place)
        return sorted(places)


def _erased_file() -> FileRejected:
    return FileRejected(
        "a file that was erased",
        found="the content of a fully erased file",
        expected="another delivery",
        next_step="Deliver the remaining rows in a new file.",
    )


def _write(
    target: Path, origin: "Origin", batches: "Iterator[pa.RecordBatch]", plan: _RowPlan
) -> tuple[int, list[int]]:
    """Write the rows of a file; return their number and the numbers of suppressed rows."""
    from pyarrow import parquet

    rows = 0
    suppressed: list[int] = []
    # No statistics: every row of a staged file is read. Speed matters more than size, since the
    # file is read once and removed. Large dictionaries are abandoned anyway.
    with parquet.ParquetWriter(
        target,
        origin.schema,
        compression="snappy",
        dictionary_pagesize_limit=_DICTIONARY_BYTES,
        write_statistics=False,
    ) as writer:
        for batch in _pieces(batches, len(origin.schema)):
            numbers = plan.numbers.of_batch(rows + 1, batch.num_rows)
            rows += batch.num_rows
            stamped = origin.stamped(batch, numbers)
            if places := plan.find_suppressed(batch, numbers):
                suppressed += [numbers[place].as_py() for place in places]
                stamped = _without(stamped, places)
            writer.write_batch(stamped)
    return rows, suppressed


def _without(batch: "pa.RecordBatch", places: list[int]) -> "pa.RecordBatch":
    import numpy as np
    import pyarrow as pa

    kept = np.ones(batch.num_rows, dtype=bool)
    kept[places] = False
    return batch.filter(pa.array(kept, pa.bool_()))


def _pieces(batches: "Iterator[pa.RecordBatch]", columns: int) -> "Iterator[pa.RecordBatch]":
    most_rows = max(1, _WRITTEN_VALUES // columns)
    for batch in batches:
        for start in range(0, batch.num_rows, most_rows):
            yield batch.slice(start, most_rows)


@dataclass(frozen=True)
class Origin:
    """The source columns stamped on each row of a file."""

    feed: Feed
    header: Header
    source_file: str
    modified_at: datetime
    ingested_at: datetime

    @property
    def schema(self) -> "pa.Schema":
        import pyarrow as pa

        timestamp_type = pa.timestamp("us", tz="UTC")
        delivered = column_types(self.feed, self.header.added).items()
        stamps: list[tuple[str, pa.DataType]] = [
            ("_source_file", pa.string()),
            ("_source_modified_at", timestamp_type),
            ("_source_row", pa.int64()),
            ("_ingested_at", timestamp_type),
        ]
        return pa.schema([*delivered, *stamps])

    def stamped(self, batch: "pa.RecordBatch", numbers: "pa.Int64Array") -> "pa.RecordBatch":
        import pyarrow as pa

        rows = batch.num_rows
        timestamp_type = pa.timestamp("us", tz="UTC")
        source: dict[str, pa.Array[Any]] = {
            "_source_file": pa.repeat(pa.scalar(self.source_file, pa.string()), rows),
            "_source_modified_at": pa.repeat(pa.scalar(self.modified_at, timestamp_type), rows),
            "_source_row": numbers,
            "_ingested_at": pa.repeat(pa.scalar(self.ingested_at, timestamp_type), rows),
        }
        read = dict(zip(batch.schema.names, batch.columns, strict=True)) | source
        columns = [
            read[field.name] if field.name in read else pa.nulls(rows, field.type)
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)
