"""The metadata files of a table, with their sizes: what a table keeps beside its data."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.manifests import read_manifests

if TYPE_CHECKING:
    from pyiceberg.table import Table

Kind = Literal["table metadata", "manifest list", "manifest", "statistics"]


@dataclass(frozen=True)
class MetadataFile:
    """A file that the current metadata refers to."""

    kind: Kind
    path: str
    size_bytes: int


def metadata_files(engine: Engine, table: str) -> list[MetadataFile]:
    """Return the metadata files of a table, of all its snapshots; a file that several share is
    there once.

    :raises TableNotFound: when the catalog has no such table.
    """
    loaded = engine.catalog.load(table)
    files = [
        *_table_metadata(loaded),
        *_manifest_lists(loaded),
        *_manifests(loaded),
        *_statistics(loaded),
    ]
    return list({file.path: file for file in files}.values())


def _table_metadata(table: "Table") -> Iterator[MetadataFile]:
    for path in [
        *(entry.metadata_file for entry in table.metadata.metadata_log),
        table.metadata_location,
    ]:
        yield from _on_disk(table, "table metadata", path)


def _manifest_lists(table: "Table") -> Iterator[MetadataFile]:
    for snapshot in table.snapshots():
        yield from _on_disk(table, "manifest list", snapshot.manifest_list)


def _manifests(table: "Table") -> Iterator[MetadataFile]:
    for snapshot in table.snapshots():
        for manifest in read_manifests(table, snapshot.snapshot_id):
            yield MetadataFile("manifest", manifest.manifest_path, manifest.manifest_length)


def _statistics(table: "Table") -> Iterator[MetadataFile]:
    for file in [*table.metadata.statistics, *table.metadata.partition_statistics]:
        yield MetadataFile("statistics", file.statistics_path, file.file_size_in_bytes)


def _on_disk(table: "Table", kind: Kind, path: str) -> Iterator[MetadataFile]:
    # Old metadata may have been deleted by hand, or while we look.
    file = table.io.new_input(path)
    if file.exists():
        yield MetadataFile(kind, path, len(file))
