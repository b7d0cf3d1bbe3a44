"""All files that a table's snapshots reference; each manifest is read once, no JVM."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from lakehouse.iceberg.metadata.location_files import path_key
from lakehouse.iceberg.metadata.manifests import CONTENTS, Content, read_manifests

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Table

MetadataKind = Literal["table metadata", "manifest list", "manifest", "statistics"]


@dataclass(frozen=True)
class NamedFile:
    """A file that metadata references."""

    kind: MetadataKind | Content
    path: str
    size_bytes: int | None
    """Size in metadata; None for metadata.json files and manifest lists."""
    is_of_main: bool = False
    """Whether main reads this data or delete file; otherwise only other snapshots do."""


def named_files(table: "Table") -> dict[str, NamedFile]:
    """Return the files of all snapshots of a table, by `path_key`."""
    manifests = all_manifests(table)
    named = {path_key(file.path): file for file in _metadata_of_snapshots(table, manifests)}
    of_main = {manifest.manifest_path for manifest in read_manifests(table)}
    # Main's manifests come last, since other snapshots can contain the same files.
    manifests.sort(key=lambda manifest: manifest.manifest_path in of_main)
    for manifest in manifests:
        is_of_main = manifest.manifest_path in of_main
        for entry in manifest.fetch_manifest_entry(table.io):
            file = entry.data_file
            kind, size_bytes = CONTENTS[int(file.content)], file.file_size_in_bytes
            named[path_key(file.file_path)] = NamedFile(
                kind, file.file_path, size_bytes, is_of_main
            )
    return named


def all_named_files(table: "Table") -> dict[str, NamedFile]:
    """Return the files of all snapshots of a table and its metadata.json files, by `path_key`."""
    named = named_files(table)
    named.update((path_key(file.path), file) for file in logged_metadata(table))
    return named


def named_metadata(table: "Table") -> Iterator[NamedFile]:
    """Yield the metadata files of all snapshots of a table."""
    yield from logged_metadata(table)
    yield from _metadata_of_snapshots(table, all_manifests(table))


def logged_metadata(table: "Table") -> Iterator[NamedFile]:
    """Yield the metadata.json files of a table: those in its log, and the current one."""
    for entry in table.metadata.metadata_log:
        yield NamedFile("table metadata", entry.metadata_file, None)
    yield NamedFile("table metadata", table.metadata_location, None)


def all_manifests(table: "Table") -> "list[ManifestFile]":
    """Return the manifests of all snapshots of a table, each once."""
    manifests = {}
    for snapshot in table.snapshots():
        for manifest in read_manifests(table, snapshot.snapshot_id):
            manifests[manifest.manifest_path] = manifest
    return list(manifests.values())


def _metadata_of_snapshots(
    table: "Table", manifests: "Iterable[ManifestFile]"
) -> Iterator[NamedFile]:
    for snapshot in table.snapshots():
        yield NamedFile("manifest list", snapshot.manifest_list, None)
    for manifest in manifests:
        yield NamedFile("manifest", manifest.manifest_path, manifest.manifest_length)
    for file in [*table.metadata.statistics, *table.metadata.partition_statistics]:
        yield NamedFile("statistics", file.statistics_path, file.file_size_in_bytes)
