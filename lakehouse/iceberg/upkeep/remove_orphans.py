"""Removal of orphans: files in a table's location that no metadata references, from killed
writes and failed commits.

Files of running writes are not referenced either, so only files older than a day are removed;
the procedure requires the same. A dry run comes first: if it would remove a large share of the
files, the location is probably shared, and nothing is removed.

Orphan metadata.json files of failed commits are in no metadata log. A commit to the embedded
catalog writes its file before the compare-and-swap, and leaves it after a conflict: 17 of 34
files after 16 contended commits. Spark's orphan removal also removes them, at the age of
orphans; these small files are removed after a day.
"""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.referenced_files import (
    metadata_with_another_uuid,
    own_orphan_metadata,
)
from lakehouse.iceberg.metadata.table_locations import (
    LocationFile,
    folder_key,
    list_location,
    list_metadata_folder,
    locations,
    lost_metadata_files,
    metadata_of_another,
    path_key,
)
from lakehouse.iceberg.metadata.unknown_commits import find_unknown_commits
from lakehouse.iceberg.upkeep.free_lock import free_lock, run_step, skipped, verified
from lakehouse.iceberg.upkeep.rewrite_procedures import call_procedure
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult
from lakehouse.iceberg.upkeep.stored_files import (
    SHARED_FILES,
    Removal,
    StoredFiles,
    bytes_of,
    keeps_all_files,
)

if TYPE_CHECKING:
    from pyiceberg.table import Table


_STEP: StepName = "remove_orphans"
YOUNGEST = timedelta(days=1)
MOST_SHARE = 0.5
"""Maximum share of the files in a location that are removed as orphans."""


def remove_orphans(
    engine: Engine, table: str, *, older_than: datetime, most_share: float = MOST_SHARE
) -> StepResult:
    """Remove unreferenced files of a location that are older than a timestamp, at least a day.

    :param most_share: maximum share of the files; if more would be removed, nothing is.
    :returns: `skipped` if there are none, if the location is shared, or if the Iceberg release is
        too old; `failed` if there are too many, or if a table outside of the catalog is in the
        location; `partial` with the paths of files that could not be deleted.
    """
    cutoff = min(older_than, datetime.now(UTC) - YOUNGEST)
    lacking = engine.catalog.iceberg.lacks_prefix_listing()
    if lacking:
        return skipped(table, _STEP, lacking)
    return run_step(table, _STEP, lambda: _remove(engine, table, cutoff, most_share))


def _remove(engine: Engine, table: str, older_than: datetime, most_share: float) -> StepResult:
    with free_lock(engine, table):
        loaded = engine.catalog.load(table)
        if keeps_all_files(loaded):
            return skipped(table, _STEP, SHARED_FILES)
        shared_with = shared_location(engine, table)
        if shared_with:
            return skipped(table, _STEP, shared_with)
        orphans = _call_procedure(engine, table, older_than, dry_run=True)
        listed = list_location(loaded)
        if not orphans:
            reason = f"no file older than {older_than:%Y-%m-%d %H:%M} is unreferenced"
            return skipped(table, _STEP, reason)
        if other := other_inside(engine, loaded, orphans):
            return StepResult(table, _STEP, "failed", other)
        if len(orphans) > most_share * len(listed):
            reason = (
                f"{len(orphans)} of {len(listed)} files in {loaded.location()} would be removed,"
                f" such as {orphans[0]}; check what they belong to, and remove them by hand or"
                " allow a larger share"
            )
            return StepResult(table, _STEP, "failed", reason)
        _call_procedure(engine, table, older_than, dry_run=False)
        now = engine.catalog.load(table)
        removal = Removal(table, _STEP, loaded, listed)
        return removal.verify(now, StoredFiles.of(now), orphans, {})


def shared_location(engine: Engine, table: str) -> str:
    """Return why files are not removed if other tables share the location; else empty."""
    shared_with = tables_in_location(engine, table)
    location = engine.catalog.load(table).location()
    names = ", ".join(shared_with)
    return f"its location {location} is shared with {names}" if shared_with else ""


def tables_in_location(engine: Engine, table: str) -> list[str]:
    """Return the other tables of the catalog that share a table's location, or parts of it.

    In Glue, databases without declarations are not listed (`Engine.within`), since an unreadable
    one would fail all upkeep. `other_inside` detects their tables.
    """
    own = folder_key(engine.catalog.load(table).location())
    sharing_tables, cutoff = [], engine.catalog.with_cached_locations()
    for name in sorted(cutoff.metadata_locations()):
        if name == table:
            continue
        folders = [folder_key(location) for location in locations(cutoff.load_for_files(name))]
        if any(folder.startswith(own) or own.startswith(folder) for folder in folders):
            sharing_tables.append(name)
    return sharing_tables


def _call_procedure(
    engine: Engine, table: str, older_than: datetime, *, dry_run: bool
) -> list[str]:
    # Listed through the table's FileIO, since Hadoop has no file system for `s3`.
    rows = call_procedure(
        engine,
        "remove_orphan_files",
        table,
        older_than=older_than,
        dry_run=dry_run,
        prefix_listing=True,
    )
    return [row["orphan_file_location"] for row in rows]


def other_inside(engine: Engine, table: "Table", paths: Collection[str]) -> str:
    """Return why files can belong to a table that `tables_in_location` lacks; else empty.

    A table in its own folder is detected by its metadata.json, and one in the same folder by
    its UUID. Metadata of a table that was registered with a metadata file of this one looks like
    that of a killed commit: if there is any, Glue is searched in all readable databases.

    :param paths: the files to remove.
    """
    if path := metadata_of_another(table, paths):
        return (
            "another table, of a database without declarations or of another catalog, is in"
            f" {table.location()}: {path}; move it to another location, or remove its folder if"
            " it is not needed"
        )
    if path := metadata_with_another_uuid(table, paths):
        return (
            f"another table, of another catalog or dropped, has its metadata in the folder of this"
            f" one: {path}; give one of them another location, or remove that file if that"
            " table is not needed"
        )
    if not lost_metadata_files(table, list_metadata_folder(table)):
        return ""
    return _written_by_another_name(engine, table) or _unknown_commits(table)


def _written_by_another_name(engine: Engine, table: "Table") -> str:
    if engine.catalog.is_embedded:
        return ""
    own = folder_key(table.location()), folder_key(table.metadata_location.rpartition("/")[0])
    for name, location in sorted(engine.catalog.unlisted_locations().items()):
        if path_key(location).startswith(own):
            return (
                f"the table {name}, of a database without declarations, has its files in"
                f" {table.location()}: {location}; create it again in another location, and drop"
                " it without its files"
            )
    return ""


def _unknown_commits(table: "Table") -> str:
    path = find_unknown_commits(table)
    if path is None:
        return ""
    return (
        f"it has commits that the catalog does not know, up to {path}, for example because the"
        " catalog was restored from a backup; see docs/operations.md to recover their rows, or"
        " move that file away if they are not needed"
    )


_LOST_METADATA: StepName = "remove_lost_metadata"


def remove_lost_metadata(engine: Engine, table: str, *, older_than: datetime) -> StepResult:
    """Remove metadata.json files that are in no log, and are older than a timestamp (at least a
    day) and than the current file; no JVM.
    """
    cutoff = min(older_than, datetime.now(UTC) - YOUNGEST)
    return run_step(table, _LOST_METADATA, lambda: _remove_lost_metadata(engine, table, cutoff))


def _remove_lost_metadata(engine: Engine, table: str, older_than: datetime) -> StepResult:
    with free_lock(engine, table):
        loaded = engine.catalog.load(table)
        shared_with = shared_location(engine, table)
        if shared_with:
            return skipped(table, _LOST_METADATA, shared_with)
        orphans = find_orphan_metadata(loaded, older_than)
        if not orphans:
            return skipped(
                table, _LOST_METADATA, "there are no old metadata files outside of the log"
            )
        paths = [file.path for file in orphans.values()]
        if other := other_inside(engine, loaded, paths):
            return StepResult(table, _LOST_METADATA, "failed", other)
        for path in paths:
            loaded.io.delete(path)
        listed = list_metadata_folder(loaded)
        remaining = [file.path for key, file in orphans.items() if key in listed]
        removed = [file for key, file in orphans.items() if key not in listed]
        step_metrics = {"removed_files": len(removed), "removed_bytes": bytes_of(removed)}
        return verified(table, _LOST_METADATA, step_metrics, remaining=remaining)


def find_orphan_metadata(table: "Table", older_than: datetime) -> dict[str, LocationFile]:
    """Return the metadata.json files that are in no log, and are older than a timestamp and
    than the current file, by `path_key`.
    """
    listed = list_metadata_folder(table)
    current = listed.get(path_key(table.metadata_location))
    if current is None:
        return {}
    older_than = min(older_than, current.modified_at)
    orphans = own_orphan_metadata(table)
    return {key: file for key, file in orphans.items() if file.modified_at < older_than}
