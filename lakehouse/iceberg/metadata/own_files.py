"""Which files are a table's own where no metadata names them any more, or not yet.

Those in its location are, unless a table that lies there too tells otherwise. Where its properties
put files, as `write.data.path` does, tables of other catalogs may put theirs, and nothing there
tells whose a file is: but of a metadata.json, which has the UUID of its table.
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
from lakehouse.iceberg.metadata.metadata_files import read_if_whole

if TYPE_CHECKING:
    from pyiceberg.table import Table


def list_own_files(table: "Table") -> dict[str, LocationFile]:
    """Return the files in a table's location, and its lost metadata where that lies elsewhere, by
    `path_key`.
    """
    return {**list_location(table), **own_lost_metadata(table)}


def own_lost_metadata(table: "Table") -> dict[str, LocationFile]:
    """Return the metadata.json files in a table's metadata folder that its log does not name, by
    `path_key`: all of a folder in its location, and of one elsewhere those that have its UUID.
    """
    lost = lost_metadata_files(table, list_metadata_folder(table))
    location = folder_key(table.location())
    own = {}
    for key, file in lost.items():
        if key.startswith(location) or _uuid_in(table, file.path) == _uuid_of(table):
            own[key] = file
    return own


def metadata_with_another_uuid(table: "Table", paths: Iterable[str]) -> str:
    """Return the first of some paths that is the metadata.json of another table; nothing where
    there is none. What cannot be read, as of a commit that was killed, is of none.
    """
    for path in sorted(filter(is_table_metadata, paths)):
        if _uuid_in(table, path) not in ("", _uuid_of(table)):
            return path
    return ""


def _uuid_of(table: "Table") -> str:
    return str(table.metadata.table_uuid)


def _uuid_in(table: "Table", path: str) -> str:
    """Return the UUID of a table that a metadata.json has; nothing of one that has none."""
    return str(read_if_whole(table, path).get("table-uuid", ""))
