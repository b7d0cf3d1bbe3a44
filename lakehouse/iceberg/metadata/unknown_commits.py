"""Commits of a table that its catalog does not know: it came from a backup, or somebody registered
an older state.

Each commit leaves a metadata.json, whose log names those before it. One in the log of another was
committed, or nothing would have been built on it; where the catalog's own log does not name it,
the rows of that commit are in files that nobody reads, and that upkeep would remove as orphans.
A commit that lost a race, or was killed, is in no log.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.location_files import (
    list_metadata_folder,
    lost_metadata_files,
)
from lakehouse.iceberg.metadata.metadata_files import read_if_whole

if TYPE_CHECKING:
    from pyiceberg.table import Table

_MOST_READ = 50
"""Of files that no log names; the newest ones, of which each tells of those before it."""


def find_unknown_commits(table: "Table") -> str | None:
    """Return the newest metadata.json of commits that the catalog does not know; None where there
    are none.

    What is older than the table's log cannot be told from what the log knew once. The last commit
    itself is in no log: where there is but one, it is taken for one that was killed.
    """
    log = table.metadata.metadata_log
    known = {_name(entry.metadata_file) for entry in log} | {_name(table.metadata_location)}
    since_ms = min(
        (entry.timestamp_ms for entry in log), default=table.metadata.last_updated_ms
    )
    for path, metadata in _lost(table):
        for entry in metadata.get("metadata-log") or []:
            is_known = _name(entry["metadata-file"]) in known
            if not is_known and entry["timestamp-ms"] > since_ms:
                return path
    return None


def _lost(table: "Table") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the metadata of a table that no log of its names, the newest first."""
    lost = lost_metadata_files(table, list_metadata_folder(table))
    files = sorted(lost.values(), key=lambda file: file.modified_at, reverse=True)
    for file in files[:_MOST_READ]:
        metadata = read_if_whole(table, file.path)
        if metadata.get("table-uuid") == str(table.metadata.table_uuid):
            yield file.path, metadata


def _name(path: str) -> str:
    return path.rpartition("/")[2]
