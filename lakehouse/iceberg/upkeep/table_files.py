"""All files that a table keeps, with their sizes: those that main reads, those that only other
snapshots name, metadata, and what lies in the table's location; no JVM, no scan of data.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.damaged_metadata import explain_table
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.manifests import CONTENTS, read_manifests
from lakehouse.iceberg.upkeep.location_files import LocationFile, list_location, path_key
from lakehouse.iceberg.upkeep.named_files import (
    keeps_all_files,
    manifests_of_snapshots,
    named_metadata,
)
from lakehouse.iceberg.upkeep.remove_orphans import tables_in_location

if TYPE_CHECKING:
    from pyiceberg.table import Table

Sizes = Mapping[str, int]
"""Bytes of each file by its `path_key`."""


@dataclass(frozen=True)
class TableFiles:
    """The files of a table at one moment. A file may be in more than one of them."""

    main_data: Sizes = field(default_factory=dict)
    main_deletes: Sizes = field(default_factory=dict)
    of_snapshots: Sizes = field(default_factory=dict)
    """Data and delete files that any snapshot names, main's among them."""
    metadata: Sizes = field(default_factory=dict)
    """metadata.json files, manifest lists, manifests and statistics that the table names."""
    listed: Sizes | None = None
    """What lies in the table's location; None where another table's files may be among it."""


def read_table_files(engine: Engine, table: str) -> TableFiles:
    """Read which files a table keeps: each manifest once, and one listing.

    :raises TableNotFound: when the catalog has no such table.
    :raises TableDamaged: when a file of its metadata is missing, or cannot be read.
    """
    with explain_table(table):
        listed = list_location(engine.catalog.load(table))
        # The names come last: what was committed meanwhile would be taken for orphans.
        loaded = engine.catalog.load(table)
        files = _named_files(loaded, listed)
    unnamed = listed.keys() - files.of_snapshots.keys() - files.metadata.keys()
    is_shared = bool(unnamed and tables_in_location(engine, table))
    if is_shared or keeps_all_files(loaded):
        return files
    return replace(files, listed={key: file.size_bytes for key, file in listed.items()})


def _named_files(table: "Table", listed: Mapping[str, LocationFile]) -> TableFiles:
    manifests = manifests_of_snapshots(table)
    of_main = {manifest.manifest_path for manifest in read_manifests(table)}
    data: dict[str, int] = {}
    deletes: dict[str, int] = {}
    of_snapshots: dict[str, int] = {}
    for manifest in manifests:
        for entry in manifest.fetch_manifest_entry(table.io):
            file = entry.data_file
            key = path_key(file.file_path)
            of_snapshots[key] = file.file_size_in_bytes
            if manifest.manifest_path in of_main:
                content = data if CONTENTS[int(file.content)] == "data" else deletes
                content[key] = file.file_size_in_bytes
    metadata = {}
    logged = [entry.metadata_file for entry in table.metadata.metadata_log]
    for path in [*named_metadata(table, manifests), *logged, table.metadata_location]:
        metadata[path_key(path)] = _size_bytes(table, path, listed)
    return TableFiles(data, deletes, of_snapshots, metadata)


def _size_bytes(table: "Table", path: str, listed: Mapping[str, LocationFile]) -> int:
    """Return the size of a file, which may lie outside of the location; 0 of one that is
    gone.
    """
    if path_key(path) in listed:
        return listed[path_key(path)].size_bytes
    file = table.io.new_input(path)
    return len(file) if file.exists() else 0
