"""Files of a snapshot, read from its manifests, with the delete files that apply to them."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.health_metrics import PartitionKey

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile, ManifestEntry, ManifestFile
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.table import Table


Content = Literal["data", "position deletes", "equality deletes"]
CONTENTS: tuple[Content, ...] = ("data", "position deletes", "equality deletes")
"""In the order of their numbers in manifests."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class TableFile:
    """A data file of a snapshot, or a delete file with the number of deleted rows."""

    content: Content
    path: str
    format: str
    spec_id: int
    partition: Mapping[str, Any]
    """Value of each field of any partition spec; None if the file's spec lacks the field."""
    record_count: int
    size_bytes: int
    snapshot_id: int | None
    """The snapshot that added the file."""


def files(engine: Engine, table: str, snapshot_id: int | None = None) -> list[TableFile]:
    """Return the data and delete files of a snapshot, by default the current one.

    :raises TableNotFound: if the catalog has no such table.
    """
    return list(read_files(engine.catalog.load(table), snapshot_id))


def read_files(table: "Table", snapshot_id: int | None = None) -> Iterator[TableFile]:
    """Yield the data and delete files of a snapshot, by default the current one."""
    specs = table.specs()
    names: dict[int, str] = {}
    for _, spec in sorted(specs.items()):
        names.update((field.field_id, field.name) for field in spec.fields)
    for manifest in read_manifests(table, snapshot_id):
        spec = specs[manifest.partition_spec_id]
        for entry in manifest.fetch_manifest_entry(table.io):
            values = partition_values(table, spec, entry)
            partition = {name: values.get(field_id) for field_id, name in names.items()}
            file = entry.data_file
            yield TableFile(
                content=CONTENTS[int(file.content)],
                path=file.file_path,
                format=str(file.file_format.value).lower(),
                spec_id=spec.spec_id,
                partition=partition,
                record_count=file.record_count,
                size_bytes=file.file_size_in_bytes,
                snapshot_id=entry.snapshot_id,
            )


def read_manifests(table: "Table", snapshot_id: int | None = None) -> "list[ManifestFile]":
    """Return the manifests of a snapshot, by default the current one; empty without a snapshot."""
    snapshot = (
        table.current_snapshot() if snapshot_id is None else table.snapshot_by_id(snapshot_id)
    )
    return snapshot.manifests(table.io) if snapshot else []


def has_live_files(manifest: "ManifestFile") -> bool:
    """Whether a manifest has live files; otherwise it only lists removed files, of any spec."""
    return manifest.has_added_files() or manifest.has_existing_files()


def own_manifests(table: "Table", snapshot_id: int) -> "list[ManifestFile]":
    return [
        manifest
        for manifest in read_manifests(table, snapshot_id)
        if manifest.added_snapshot_id == snapshot_id
    ]


def partition_values(
    table: "Table", spec: "PartitionSpec", entry: "ManifestEntry"
) -> dict[int, Any]:
    """Return the values of a file's partition fields by field id, as Python objects."""
    from pyiceberg.schema import index_by_id

    sources = index_by_id(table.schema())
    values: dict[int, Any] = {}
    for position, field in enumerate(spec.fields):
        value = entry.data_file.partition[position]
        if field.source_id in sources:
            source_type = sources[field.source_id].field_type
            value = readable(value, str(field.transform.result_type(source_type)))
        values[field.field_id] = value
    return values


def readable(value: Any, result_type: str) -> Any:
    """Convert a value from a manifest to Python."""
    # Manifests store timestamps as numbers since 1970.
    if isinstance(value, float) and math.isnan(value):
        # The same object each time, so that equal partitions compare equal.
        return math.nan
    if not isinstance(value, int):
        return value
    if result_type == "date":
        return _day(value)
    if result_type in ("timestamp", "timestamptz"):
        timestamp = _timestamp(value)
        return timestamp if result_type == "timestamptz" else timestamp.replace(tzinfo=None)
    return value


def _day(days: int) -> date:
    """Convert days since 1970 to a date, clamped to Python's range."""
    first, last = (date.min - _EPOCH.date()).days, (date.max - _EPOCH.date()).days
    return _EPOCH.date() + timedelta(days=min(max(days, first), last))


def _timestamp(microseconds: int) -> datetime:
    """Convert microseconds since 1970 to a timestamp, clamped to Python's range."""
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    try:
        return _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return last if microseconds > 0 else first


DELETED_FROM_PATH = 2147483546
"""Field id of `file_path` in position delete files, reserved by Iceberg's specification."""
_DATA_FILE_STRUCT, _FORMAT_FIELD, _CONTENT_FIELD = 2, 101, 134
_REFERENCED_PATH, _VECTOR_BYTES = 17, 19
"""Positions of `referenced_data_file` and `content_size_in_bytes` in a format 3 entry."""


@dataclass(frozen=True)
class LiveFile:
    """A live data or delete file of a snapshot."""

    content: Content
    path: str
    partition: PartitionKey
    rows: int
    """Rows of a data file, or rows that a delete file deletes."""
    size_bytes: int
    """For a deletion vector, its own size in a shared file."""
    sequence_number: int
    snapshot_id: int | None
    """The snapshot that added it."""
    deletes_from: str | None = None
    """Path of the only data file that a delete file applies to; None for several."""


def read_live_files(table: "Table", manifests: "Iterable[ManifestFile]") -> Iterator[LiveFile]:
    """Yield the live files of some manifests; each manifest is read once."""
    specs = table.specs()
    for manifest in manifests:
        spec = specs[manifest.partition_spec_id]
        # Many files share a partition, and its values are slow to parse.
        keys: dict[tuple[Any, ...], PartitionKey] = {}
        for entry in _entries(table, manifest):
            file = entry.data_file
            values = tuple(file.partition[at] for at in range(len(spec.fields)))
            if values not in keys:
                keys[values] = _partition_key(table, spec, entry)
            yield _live_file(entry, keys[values])


def _entries(table: "Table", manifest: "ManifestFile") -> "Iterator[ManifestEntry]":
    """Yield the live entries of a manifest one at a time, with the columns of format 3.

    PyIceberg's own reader omits the data file of a deletion vector, and is slow.
    """
    from pyiceberg.avro.file import AvroFile
    from pyiceberg.manifest import (
        MANIFEST_ENTRY_SCHEMAS,
        DataFile,
        DataFileContent,
        FileFormat,
        ManifestEntry,
        ManifestEntryStatus,
    )

    with AvroFile[ManifestEntry](
        table.io.new_input(manifest.manifest_path),
        MANIFEST_ENTRY_SCHEMAS[3],
        read_types={-1: ManifestEntry, _DATA_FILE_STRUCT: DataFile},
        read_enums={
            0: ManifestEntryStatus,
            _FORMAT_FIELD: FileFormat,
            _CONTENT_FIELD: DataFileContent,
        },
    ) as entries:
        for entry in entries:
            if entry.status == ManifestEntryStatus.DELETED:
                continue
            # New files inherit missing values from the manifest.
            if entry.snapshot_id is None and manifest.added_snapshot_id is not None:
                entry.snapshot_id = manifest.added_snapshot_id
            if entry.sequence_number is None:
                entry.sequence_number = manifest.sequence_number
            yield entry


def _partition_key(
    table: "Table", spec: "PartitionSpec", entry: "ManifestEntry"
) -> PartitionKey:
    values = partition_values(table, spec, entry)
    named = tuple((field.name, values[field.field_id]) for field in spec.fields)
    return PartitionKey(spec.spec_id, named)


def _live_file(entry: "ManifestEntry", partition: PartitionKey) -> LiveFile:
    file = entry.data_file
    size_bytes, deletes_from = file.file_size_in_bytes, None
    content = CONTENTS[int(file.content)]
    if content != "data":
        size_bytes = file[_VECTOR_BYTES] or size_bytes
        deletes_from = _deletes_from(file) if content == "position deletes" else None
    return LiveFile(
        content=content,
        path=file.file_path,
        partition=partition,
        rows=file.record_count,
        size_bytes=size_bytes,
        sequence_number=entry.sequence_number or 0,
        snapshot_id=entry.snapshot_id,
        deletes_from=deletes_from,
    )


def _deletes_from(file: "DataFile") -> str | None:
    """Return the only data file of a delete file; in format 2, from equal bounds of paths."""
    referenced: str | None = file[_REFERENCED_PATH]
    if referenced is not None:
        return referenced
    low = (file.lower_bounds or {}).get(DELETED_FROM_PATH)
    high = (file.upper_bounds or {}).get(DELETED_FROM_PATH)
    return low.decode() if low is not None and low == high else None


def dangling_deletes(files: Sequence[LiveFile]) -> list[LiveFile]:
    """Return the delete files of a snapshot that apply to no data file.

    Position deletes apply to data files of the same partition that are not newer, equality
    deletes to older ones (https://iceberg.apache.org/spec/#scan-planning). A file that would
    have to be read to decide counts as needed.
    """
    delete_files = [file for file in files if file.content != "data"]
    if not delete_files:
        return []
    ages: dict[str, int] = {}
    oldest: dict[PartitionKey, int] = {}
    for file in files:
        if file.content != "data":
            continue
        ages[file.path] = file.sequence_number
        known = oldest.get(file.partition, file.sequence_number)
        oldest[file.partition] = min(known, file.sequence_number)
    oldest_of_all = min(oldest.values(), default=None)
    dangling = []
    for file in delete_files:
        if file.deletes_from is not None:
            age = ages.get(file.deletes_from)
        elif file.content == "equality deletes" and not file.partition.values:
            age = oldest_of_all
        else:
            age = oldest.get(file.partition)
        if not _is_needed(file, age):
            dangling.append(file)
    return dangling


def _is_needed(delete_file: LiveFile, oldest: int | None) -> bool:
    """Whether a delete file applies to data files that are this old (None: no data file)."""
    if oldest is None:
        return False
    if delete_file.content == "equality deletes":
        return oldest < delete_file.sequence_number
    return oldest <= delete_file.sequence_number
