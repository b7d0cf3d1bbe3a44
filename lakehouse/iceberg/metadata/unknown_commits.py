"""Find commits that the catalog does not know, after a backup was registered.

A file in the log of another was committed. If the catalog's log lacks it, upkeep would remove
its rows as orphans. A failed or killed commit is in no log.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.referenced_files import read_metadata_json
from lakehouse.iceberg.metadata.table_locations import (
    list_metadata_folder,
    lost_metadata_files,
)

if TYPE_CHECKING:
    from pyiceberg.table import Table

_MOST_READ = 50
"""Limit of orphan files to read; the newest ones contain the log of older ones."""


def find_unknown_commits(table: "Table") -> str | None:
    """Return the newest metadata.json of unknown commits; None if there are none.

    Commits before the table's log cannot be checked. A single one looks like a killed commit.
    """
    log = table.metadata.metadata_log
    known = {_name(entry.metadata_file) for entry in log} | {_name(table.metadata_location)}
    since_ms = min(
        (entry.timestamp_ms for entry in log), default=table.metadata.last_updated_ms
    )
    for path, metadata in _orphans(table):
        for entry in metadata.get("metadata-log") or []:
            is_known = _name(entry["metadata-file"]) in known
            if not is_known and entry["timestamp-ms"] > since_ms:
                return path
    return None


def _orphans(table: "Table") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the table's metadata files that are not in its log, newest first."""
    orphans = lost_metadata_files(table, list_metadata_folder(table))
    files = sorted(orphans.values(), key=lambda file: file.modified_at, reverse=True)
    for file in files[:_MOST_READ]:
        metadata = read_metadata_json(table, file.path)
        if metadata.get("table-uuid") == str(table.metadata.table_uuid):
            yield file.path, metadata


def _name(path: str) -> str:
    return path.rpartition("/")[2]
