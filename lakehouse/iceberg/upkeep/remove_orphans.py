"""Removal of orphans: files in a table's location that no metadata references, from killed
writes and failed commits.

Files of running writes are not referenced either, so only files older than a day are removed;
the procedure requires the same. A dry run comes first: if it would remove a large share of the
files, the location is probably shared, and nothing is removed.
"""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.referenced_files import metadata_with_another_uuid
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
from lakehouse.iceberg.upkeep.free_lock import free_lock, run_step, skipped
from lakehouse.iceberg.upkeep.rewrite_procedures import call_procedure
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult
from lakehouse.tables.quoting import literal

if TYPE_CHECKING:
    from pyiceberg.table import Table


_STEP: StepName = "remove_orphans"
YOUNGEST = timedelta(days=1)
MOST_SHARE = 0.5
"""Maximum share of the files in a location that are removed as orphans."""
SHARED_FILES = "its files may be another table's too: gc.enabled is false"


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
        if others := tables_in_location(engine, table):
            reason = f"its location {loaded.location()} is shared with {', '.join(others)}"
            return skipped(table, _STEP, reason)
        orphans = _call_procedure(engine, table, older_than, dry_run=True)
        listed = list_location(loaded)
        if not orphans:
            reason = f"no file older than {older_than:%Y-%m-%d %H:%MZ} is unreferenced"
            return skipped(table, _STEP, reason)
        if other := other_inside(engine, loaded, orphans):
            return StepResult(table, _STEP, "failed", other)
        if len(orphans) > most_share * len(listed):
            reason = (
                f"{len(orphans)} of {len(listed)} files in {loaded.location()} would be removed,"
                f" such as {orphans[0]}; check what they belong to, and remove them by `lakehouse"
                f' sql --write "CALL system.remove_orphan_files(table => {literal(table)},'
                ' prefix_listing => true)"`'
            )
            return StepResult(table, _STEP, "failed", reason)
        _call_procedure(engine, table, older_than, dry_run=False)
        remaining = list_location(loaded).keys()
    by_key = {path_key(path): path for path in orphans}
    removed = by_key.keys() - remaining
    removed_bytes = bytes_of(listed[key] for key in removed if key in listed)
    step_metrics = {"removed_files": len(removed), "removed_bytes": removed_bytes}
    paths = tuple(path for key, path in by_key.items() if key in remaining)
    if paths:
        reason = f"{len(paths)} files could not be deleted"
        return StepResult(table, _STEP, "partial", reason, step_metrics, paths)
    return StepResult(table, _STEP, "done", "", step_metrics)


def keeps_all_files(table: "Table") -> bool:
    """Whether files can belong to another table too, as for Spark's `snapshot`."""
    return str(table.properties.get("gc.enabled", "true")).lower() == "false"


def bytes_of(files: Iterable[LocationFile]) -> int:
    """Return the total size of some files."""
    return sum(file.size_bytes for file in files)


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
