"""Comparison of the files that a table's snapshots reference with those that exist."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.referenced_files import NamedFile, named_files
from lakehouse.iceberg.metadata.table_locations import (
    LocationFile,
    folder_key,
    list_location,
    path_key,
)
from lakehouse.iceberg.upkeep.free_lock import verified
from lakehouse.iceberg.upkeep.readers_view import ReadersView
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult

if TYPE_CHECKING:
    from pyiceberg.table import Table

SHARED_FILES = "its files may be another table's too: gc.enabled is false"
_MAX_NAMED_PATHS = 5


@dataclass(frozen=True)
class StoredFiles:
    """Referenced files of a table, and existing files in its location, by `path_key`."""

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


@dataclass(frozen=True)
class Removal:
    """A removal of files from a table, with the table and the listing before it."""

    name: str
    step: StepName
    table: "Table"
    listed: Mapping[str, LocationFile]

    def verify(
        self,
        now: "Table",
        stored: StoredFiles,
        paths: Iterable[str],
        step_metrics: Mapping[str, float],
    ) -> StepResult:
        """Compare the table with its state before the removal, and paths with a new listing."""
        by_key = {path_key(path): path for path in paths}
        remaining = _existing(now, by_key, stored.listed)
        removed = by_key.keys() - remaining.keys()
        removed_files = [self.listed[key] for key in removed if key in self.listed]
        named = {key: file.path for key, file in stored.named.items()}
        missing = sorted(named.keys() - _existing(now, named, stored.listed).keys())
        changes = ReadersView.of(self.table).changes(ReadersView.of(now))
        if missing:
            some = ", ".join(named[key] for key in missing[:_MAX_NAMED_PATHS])
            changes.append(f"{len(missing)} referenced files are missing, such as {some}")
        metrics = {
            **step_metrics,
            "removed_files": len(removed),
            "removed_bytes": bytes_of(removed_files),
        }
        return verified(self.name, self.step, metrics, changes, list(remaining.values()))


def keeps_all_files(table: "Table") -> bool:
    """Whether files can belong to another table too, as for Spark's `snapshot`."""
    return str(table.properties.get("gc.enabled", "true")).lower() == "false"


def bytes_of(files: Iterable[LocationFile]) -> int:
    """Return the total size of some files."""
    return sum(file.size_bytes for file in files)


def _existing(
    table: "Table", paths: Mapping[str, str], listed: Mapping[str, LocationFile]
) -> dict[str, str]:
    """Return the paths that exist; files outside of the table's location take one request each."""
    folder = folder_key(table.location())
    existing = {}
    for key, path in paths.items():
        exists = key in listed if key.startswith(folder) else table.io.new_input(path).exists()
        if exists:
            existing[key] = path
    return existing
