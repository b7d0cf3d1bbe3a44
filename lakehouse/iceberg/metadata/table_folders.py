"""All folders with files of a table, including former locations of its snapshots."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.location_files import folder_key, locations
from lakehouse.iceberg.metadata.named_files import all_named_files

if TYPE_CHECKING:
    from pyiceberg.table import Table

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
