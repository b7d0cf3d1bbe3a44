"""The files that the snapshots of a table name, compared with those that are there."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.location_files import LocationFile, folder_key, list_location
from lakehouse.iceberg.metadata.named_files import NamedFile, named_files

if TYPE_CHECKING:
    from pyiceberg.table import Table

FILES_OF_OTHERS = "its files may be another table's too: gc.enabled is false"


@dataclass(frozen=True)
class StoredFiles:
    """What the snapshots of a table name, and what its location holds, both by `path_key`."""

    named: Mapping[str, NamedFile]
    listed: Mapping[str, LocationFile]

    @classmethod
    def of(cls, table: "Table") -> "StoredFiles":
        """Read both: each manifest once, and one listing.

        The names come first: what they tell of is there by the time of the listing, unless it
        was deleted.
        """
        named = named_files(table)
        return cls(named, list_location(table))


def keeps_all_files(table: "Table") -> bool:
    """Whether a table says that its files may be another table's too, as a snapshot of it by
    Spark does.
    """
    return str(table.properties.get("gc.enabled", "true")).lower() == "false"


def existing(
    table: "Table", named: Mapping[str, NamedFile], listed: Mapping[str, LocationFile]
) -> list[str]:
    """Return the paths of those of some named files that are there; what lies outside of the
    table's location is asked for one by one.

    :param named: by `path_key`.
    :param listed: what the location holds.
    """
    folder = folder_key(table.location())
    there = []
    for key, file in named.items():
        is_there = key in listed if key.startswith(folder) else _exists(table, file.path)
        if is_there:
            there.append(file.path)
    return there


def missing(
    table: "Table", named: Mapping[str, NamedFile], listed: Mapping[str, LocationFile]
) -> list[str]:
    """Return the paths of those of some named files that are not there."""
    there = set(existing(table, named, listed))
    return [file.path for file in named.values() if file.path not in there]


def bytes_of(files: Iterable[LocationFile]) -> int:
    """Return the size of some files together."""
    return sum(file.size_bytes for file in files)


def _exists(table: "Table", path: str) -> bool:
    return bool(table.io.new_input(path).exists())
