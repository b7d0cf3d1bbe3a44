"""Comparison of the files that a table's snapshots reference with those that exist."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.location_files import LocationFile, folder_key, list_location
from lakehouse.iceberg.metadata.named_files import NamedFile, named_files

if TYPE_CHECKING:
    from pyiceberg.table import Table

SHARED_FILES = "its files may be another table's too: gc.enabled is false"


@dataclass(frozen=True)
class StoredFiles:
    """Referenced files of a table's snapshots, and existing files in its location, both by
    `path_key`.
    """

    named: Mapping[str, NamedFile]
    listed: Mapping[str, LocationFile]

    @classmethod
    def of(cls, table: "Table") -> "StoredFiles":
        """Read each manifest once, and list the location.

        References are read first, so that all of their files exist at the time of the listing,
        unless they were deleted.
        """
        named = named_files(table)
        return cls(named, list_location(table))


def keeps_all_files(table: "Table") -> bool:
    """Whether a table's files can belong to another table too, as for Spark's `snapshot`
    procedure.
    """
    return str(table.properties.get("gc.enabled", "true")).lower() == "false"


def existing(
    table: "Table", named: Mapping[str, NamedFile], listed: Mapping[str, LocationFile]
) -> list[str]:
    """Return the paths that exist; files outside of the table's location take one request each.

    :param named: by `path_key`.
    :param listed: the files in the location.
    """
    folder = folder_key(table.location())
    existing_paths = []
    for key, file in named.items():
        exists = key in listed if key.startswith(folder) else _exists(table, file.path)
        if exists:
            existing_paths.append(file.path)
    return existing_paths


def missing(
    table: "Table", named: Mapping[str, NamedFile], listed: Mapping[str, LocationFile]
) -> list[str]:
    """Return the paths that do not exist."""
    existing_paths = set(existing(table, named, listed))
    return [file.path for file in named.values() if file.path not in existing_paths]


def bytes_of(files: Iterable[LocationFile]) -> int:
    """Return the total size of some files."""
    return sum(file.size_bytes for file in files)


def _exists(table: "Table", path: str) -> bool:
    return bool(table.io.new_input(path).exists())
