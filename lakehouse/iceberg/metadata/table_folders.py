"""All folders in which a table keeps files: where it writes, and where it wrote before it was
moved, as long as any snapshot names a file there.
"""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.location_files import folder_key, locations
from lakehouse.iceberg.metadata.named_files import all_named_files

if TYPE_CHECKING:
    from pyiceberg.table import Table

_PART = re.compile(r"[^/]*=[^/]*|[01]{4}|[01]{8}")
"""A folder of a partition, or of the hash by which Iceberg spreads files in object storage."""


def table_folders(table: "Table") -> list[str]:
    """Return a table's location, the folders that its properties name, and those of files that its
    metadata names elsewhere; none lies in another.
    """
    folders = list(locations(table))
    known = tuple(map(folder_key, folders))
    for key, file in all_named_files(table).items():
        if not key.startswith(known):
            folders.append(_folder(file.path))
            known = (*known, folder_key(folders[-1]))
    return outermost(folders)


def outermost(folders: Iterable[str]) -> list[str]:
    """Return folders without those that lie in another one of them."""
    kept: list[str] = []
    for folder in sorted(folders, key=folder_key):
        # What lies in a folder follows it.
        if not kept or not folder_key(folder).startswith(folder_key(kept[-1])):
            kept.append(folder)
    return kept


def _folder(path: str) -> str:
    """Return the folder of a file, above those of partitions."""
    folder = path.rpartition("/")[0]
    while _PART.fullmatch(folder.rpartition("/")[2]):
        folder = folder.rpartition("/")[0]
    return folder
