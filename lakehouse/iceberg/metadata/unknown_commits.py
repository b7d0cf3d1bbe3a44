"""Find commits that the catalog does not know, after a backup was registered.

A file in the log of another was committed. If the catalog's log lacks it, upkeep would remove
its rows as orphans. A failed or killed commit is in no log.
"""

from posixpath import basename
from typing import TYPE_CHECKING

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
    known = {basename(entry.metadata_file) for entry in log} | {
        basename(table.metadata_location)
    }
    since_ms = min(
        (entry.timestamp_ms for entry in log), default=table.metadata.last_updated_ms
    )
    orphans = lost_metadata_files(table, list_metadata_folder(table)).values()
    newest_first = sorted(orphans, key=lambda file: file.modified_at, reverse=True)
    for file in newest_first[:_MOST_READ]:
        metadata = read_metadata_json(table, file.path)
        if metadata.get("table-uuid") != str(table.metadata.table_uuid):
            continue
        for entry in metadata.get("metadata-log") or []:
            is_known = basename(entry["metadata-file"]) in known
            if not is_known and entry["timestamp-ms"] > since_ms:
                return file.path
    return None
