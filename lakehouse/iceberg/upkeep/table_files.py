"""All files of a table with their sizes: current, historical, metadata, and other files in its
location; no JVM, no data scan.
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
"""Bytes of each file, by `path_key`."""


@dataclass(frozen=True)
class TableFiles:
    """The files of a table at one point in time; a file can be in several fields."""

    main_data: Sizes = field(default_factory=dict)
    main_deletes: Sizes = field(default_factory=dict)
    of_snapshots: Sizes = field(default_factory=dict)
    """Data and delete files of all snapshots, including main's."""
    metadata: Sizes = field(default_factory=dict)
    """Referenced metadata.json files, manifest lists, manifests and statistics."""
    listed: Sizes | None = None
    """Files in the table's location; None if files of another table can be in it."""


def read_table_files(engine: Engine, table: str) -> TableFiles:
    """Read the files of a table: each manifest once, and one listing.

    :raises TableNotFound: if the catalog has no such table.
    :raises TableDamaged: if a metadata file is missing or cannot be read.
    """
    with explain_table(table):
        listed = list_location(engine.catalog.load(table))
        # References are read last: otherwise new commits would look like orphans.
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
            # The file can be outside of the location, or missing.
            of_listing = listed.get(key)
            size_bytes = of_listing.size_bytes if of_listing else stored_size(table, file.path)
        content = of_snapshots if file.kind in CONTENTS else metadata
        content[key] = size_bytes or 0
        if file.is_of_main:
            of_main = data if file.kind == "data" else deletes
            of_main[key] = content[key]
    return TableFiles(data, deletes, of_snapshots, metadata)
