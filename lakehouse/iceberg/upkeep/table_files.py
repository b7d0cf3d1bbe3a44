"""All files that a table keeps, with their sizes: those that main reads, those that only other
snapshots name, metadata, and what lies in the table's location; no JVM, no scan of data.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.damaged_metadata import explain_table
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.location_files import LocationFile, list_location
from lakehouse.iceberg.metadata.manifests import CONTENTS
from lakehouse.iceberg.metadata.metadata_files import stored_size
from lakehouse.iceberg.metadata.named_files import all_named_files
from lakehouse.iceberg.upkeep.remove_orphans import tables_in_location
from lakehouse.iceberg.upkeep.stored_files import keeps_all_files

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
    data: dict[str, int] = {}
    deletes: dict[str, int] = {}
    of_snapshots: dict[str, int] = {}
    metadata: dict[str, int] = {}
    for key, file in all_named_files(table).items():
        size_bytes = file.size_bytes
        if size_bytes is None:
            # It may lie outside of the location, or be gone.
            of_listing = listed.get(key)
            size_bytes = of_listing.size_bytes if of_listing else stored_size(table, file.path)
        content = of_snapshots if file.kind in CONTENTS else metadata
        content[key] = size_bytes or 0
        if file.is_of_main:
            of_main = data if file.kind == "data" else deletes
            of_main[key] = content[key]
    return TableFiles(data, deletes, of_snapshots, metadata)
