"""The files that the snapshots of a table name, beside those that are there."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.manifests import read_manifests
from lakehouse.iceberg.upkeep.location_files import LocationFile, list_location, path_key

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Table

FILES_OF_OTHERS = "its files may be another table's too: gc.enabled is false"


@dataclass(frozen=True)
class StoredFiles:
    """What the snapshots of a table name, and what its location holds, both by `path_key`."""

    named: Mapping[str, str]
    """The paths as metadata has them."""
    listed: Mapping[str, LocationFile]

    @classmethod
    def of(cls, table: "Table") -> "StoredFiles":
        """Read both: each manifest once, and one listing.

        The names come first: what they tell of is there by the time of the listing, unless it
        was deleted.
        """
        named = named_files(table)
        return cls(named, list_location(table))


def named_files(table: "Table") -> dict[str, str]:
    """Return the paths of the files that any snapshot of a table names, by `path_key`: manifest
    lists, manifests, data and delete files, statistics.
    """
    manifests = manifests_of_snapshots(table)
    paths = named_metadata(table, manifests)
    for manifest in manifests:
        for entry in manifest.fetch_manifest_entry(table.io):
            paths.append(entry.data_file.file_path)
    return {path_key(path): path for path in paths}


def manifests_of_snapshots(table: "Table") -> "list[ManifestFile]":
    """Return the manifests of all snapshots of a table, each once."""
    manifests = {}
    for snapshot in table.snapshots():
        for manifest in read_manifests(table, snapshot.snapshot_id):
            manifests[manifest.manifest_path] = manifest
    return list(manifests.values())


def named_metadata(table: "Table", manifests: "Iterable[ManifestFile]") -> list[str]:
    """Return the paths of a table's manifest lists, manifests and statistics.

    :param manifests: those of all snapshots.
    """
    paths = [snapshot.manifest_list for snapshot in table.snapshots()]
    paths += [manifest.manifest_path for manifest in manifests]
    for statistics in [*table.metadata.statistics, *table.metadata.partition_statistics]:
        paths.append(statistics.statistics_path)
    return paths


def keeps_all_files(table: "Table") -> bool:
    """Whether a table says that its files may be another table's too, as a snapshot of it by
    Spark does.
    """
    return str(table.properties.get("gc.enabled", "true")).lower() == "false"


def existing(
    table: "Table", paths: Mapping[str, str], listed: Mapping[str, LocationFile]
) -> list[str]:
    """Return those of some paths that are there; what lies outside of the table's location is
    asked for one by one.

    :param paths: by `path_key`.
    :param listed: what the location holds.
    """
    folder = f"{path_key(table.location()).rstrip('/')}/"
    there = []
    for key, path in paths.items():
        is_there = key in listed if key.startswith(folder) else _exists(table, path)
        if is_there:
            there.append(path)
    return there


def missing(
    table: "Table", paths: Mapping[str, str], listed: Mapping[str, LocationFile]
) -> list[str]:
    """Return those of some paths that are not there."""
    there = set(existing(table, paths, listed))
    return [path for path in paths.values() if path not in there]


def bytes_of(files: Iterable[LocationFile]) -> int:
    """Return the size of some files together."""
    return sum(file.size_bytes for file in files)


def _exists(table: "Table", path: str) -> bool:
    return bool(table.io.new_input(path).exists())
