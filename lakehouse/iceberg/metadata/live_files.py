"""Live files of a snapshot, with the properties that match delete files to data files."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.manifests import CONTENTS, Content, partition_values
from lakehouse.iceberg.metadata.measured_health import PartitionKey

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile, ManifestEntry, ManifestFile
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.table import Table

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
