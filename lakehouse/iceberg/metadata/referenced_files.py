"""Files that a table's metadata references: metadata, data and delete files, missing ones."""

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.manifests import CONTENTS, Content, read_manifests
from lakehouse.iceberg.metadata.table_locations import (
    LocationFile,
    folder_key,
    is_table_metadata,
    list_location,
    list_metadata_folder,
    locations,
    lost_metadata_files,
    path_key,
)

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


_PART = re.compile(r"[^/]*=[^/]*|[01]{4}|[01]{8}")
"""Folder of a partition, or of Iceberg's hash prefix in object storage."""


def table_folders(table: "Table") -> list[str]:
    """Return the outermost folders of a table's referenced files and properties."""
    folders = list(locations(table))
    known = tuple(map(folder_key, folders))
    for key, file in all_named_files(table).items():
        if not key.startswith(known):
            folders.append(_folder(file.path))
            known = (*known, folder_key(folders[-1]))
    return outermost(folders)


def outermost(folders: Iterable[str]) -> list[str]:
    """Return folders without those inside another of them."""
    outer_folders: list[str] = []
    for folder in sorted(folders, key=folder_key):
        # Sorted order puts subfolders after their parent.
        if not outer_folders or not folder_key(folder).startswith(
            folder_key(outer_folders[-1])
        ):
            outer_folders.append(folder)
    return outer_folders


def _folder(path: str) -> str:
    """Return the folder of a file, above partition folders."""
    folder = path.rpartition("/")[0]
    while _PART.fullmatch(folder.rpartition("/")[2]):
        folder = folder.rpartition("/")[0]
    return folder


def metadata_files(engine: Engine, table: str) -> list[NamedFile]:
    """Return the existing metadata files of all snapshots of a table, each once.

    :raises TableNotFound: if the catalog has no such table.
    """
    loaded = engine.catalog.load(table)
    files = {}
    of_snapshots = _metadata_of_snapshots(loaded, all_manifests(loaded))
    for file in (*logged_metadata(loaded), *of_snapshots):
        size_bytes = file.size_bytes
        if size_bytes is None:
            size_bytes = stored_size(loaded, file.path)
        if size_bytes is not None:
            files[file.path] = replace(file, size_bytes=size_bytes)
    return list(files.values())


def parse_metadata(path: str, content: bytes) -> dict[str, Any]:
    """Parse a metadata.json file, which can be compressed."""
    import gzip

    parsed: dict[str, Any] = json.loads(gzip.decompress(content) if ".gz." in path else content)
    return parsed


def read_metadata_json(table: "Table", path: str) -> dict[str, Any]:
    """Return the content of a metadata.json file; empty if it is missing or incomplete."""
    try:
        with table.io.new_input(path).open() as stream:
            content = stream.read()
    except FileNotFoundError:
        # Another process can remove it after the listing.
        return {}
    try:
        parsed = parse_metadata(path, content)
    except (ValueError, EOFError, OSError, zlib.error):
        # A killed commit left a partial file.
        return {}
    return parsed if isinstance(parsed, dict) else {}


def stored_size(table: "Table", path: str) -> int | None:
    """Return the size of a file in bytes, by one request; None if it is missing."""
    file = table.io.new_input(path)
    return len(file) if file.exists() else None


def list_own_files(table: "Table") -> dict[str, LocationFile]:
    """Return the files in a table's location and its orphan metadata elsewhere, by `path_key`."""
    return {**list_location(table), **own_orphan_metadata(table)}


def own_orphan_metadata(table: "Table") -> dict[str, LocationFile]:
    """Return a table's metadata.json files that are not in its log; elsewhere by UUID."""
    orphans = lost_metadata_files(table, list_metadata_folder(table))
    location = folder_key(table.location())
    own = {}
    for key, file in orphans.items():
        if key.startswith(location) or _uuid_in(table, file.path) == _uuid_of(table):
            own[key] = file
    return own


def metadata_with_another_uuid(table: "Table", paths: Iterable[str]) -> str:
    """Return the first path that is another table's metadata.json; empty without one."""
    for path in sorted(filter(is_table_metadata, paths)):
        if _uuid_in(table, path) not in ("", _uuid_of(table)):
            return path
    return ""


def _uuid_of(table: "Table") -> str:
    return str(table.metadata.table_uuid)


def _uuid_in(table: "Table", path: str) -> str:
    """Return the table UUID in a metadata.json; empty if it has none."""
    return str(read_metadata_json(table, path).get("table-uuid", ""))


_AT_ONCE = 16
"""Number of concurrent requests; on S3 each takes some milliseconds."""


def missing_files(catalog: Catalog, table: str) -> list[str]:
    """Return the missing files of a table's current snapshot, also with unsupported types.

    :raises TableDamaged: if its metadata file is missing or cannot be read.
    """
    loaded = catalog.load_for_files(table)
    snapshot = loaded.current_snapshot()
    if snapshot is None:
        return []
    if lists := missing_paths(loaded, [snapshot.manifest_list]):
        return lists
    manifests = read_manifests(loaded)
    missing = missing_paths(loaded, [manifest.manifest_path for manifest in manifests])
    content = []
    for manifest in manifests:
        if manifest.manifest_path not in missing:
            entries = manifest.fetch_manifest_entry(loaded.io)
            content += [entry.data_file.file_path for entry in entries]
    return missing + missing_paths(loaded, content)


def missing_paths(table: "Table", paths: Sequence[str]) -> list[str]:
    """Return the paths that do not exist, in order."""

    def is_there(path: str) -> bool:
        return table.io.new_input(path).exists()

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="files") as pool:
        exists = pool.map(is_there, paths)
        return [path for path, is_found in zip(paths, exists, strict=True) if not is_found]
