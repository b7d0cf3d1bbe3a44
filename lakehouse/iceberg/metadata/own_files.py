"""Files that belong to a table although no metadata references them.

All files in its location do, without tables inside it. Elsewhere, a metadata.json contains the
UUID of its table, and ownership of data files is unknown.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.location_files import (
    LocationFile,
    folder_key,
    is_table_metadata,
    list_location,
    list_metadata_folder,
    lost_metadata_files,
)
from lakehouse.iceberg.metadata.metadata_files import read_metadata_json

if TYPE_CHECKING:
    from pyiceberg.table import Table


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
