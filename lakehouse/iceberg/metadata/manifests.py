"""The files of a snapshot, read from its manifests.

PyIceberg's `inspect` fails after a source column of an old partition spec was dropped.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from lakehouse.iceberg.metadata.engine import Engine

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestEntry, ManifestFile
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
    """Return the manifests that a snapshot's own commit wrote."""
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
