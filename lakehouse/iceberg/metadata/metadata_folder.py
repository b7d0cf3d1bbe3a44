"""What lies in a table's metadata folder, whether or not the metadata names it; one listing, on
a disk as in a bucket.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyiceberg.table import Table

_TABLE_METADATA = ".metadata.json"


def list_metadata_folder(table: "Table") -> dict[str, int] | None:
    """Return the size in bytes of each file in a table's metadata folder by its path; None
    where the files are of a kind that cannot be listed.
    """
    from pyarrow.fs import FileSelector, FileType
    from pyiceberg.io.pyarrow import PyArrowFileIO

    if not isinstance(table.io, PyArrowFileIO):
        return None
    folder = table.metadata_location.rpartition("/")[0]
    scheme, host, path = table.io.parse_location(folder, table.io.properties)
    filesystem = table.io.fs_by_scheme(scheme, host)
    sizes = {}
    for file in filesystem.get_file_info(FileSelector(path, allow_not_found=True)):
        # Spark leaves a checksum beside each file on a disk.
        if file.type == FileType.File and not file.base_name.startswith("."):
            sizes[f"{folder}/{file.base_name}"] = file.size
    return sizes


def lost_metadata_files(table: "Table", sizes: Mapping[str, int]) -> tuple[str, ...]:
    """Return the metadata.json files of a listing that the table's log does not name, sorted.

    A commit that lost a race left one, or it has been pruned from the log; that of a commit
    under way is among them.
    """
    logged = {_name(entry.metadata_file) for entry in table.metadata.metadata_log}
    logged.add(_name(table.metadata_location))
    lost = []
    for path in sizes:
        # Paths of one file are written in more than one way, as `file:/` and `file:///`; each
        # name is there once.
        if _TABLE_METADATA in _name(path) and _name(path) not in logged:
            lost.append(path)
    return tuple(sorted(lost))


def _name(path: str) -> str:
    return path.rpartition("/")[2]
