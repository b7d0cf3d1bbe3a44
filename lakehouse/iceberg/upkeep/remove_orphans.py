"""Orphans: files in a table's location that no metadata names, left behind by writes that were
killed and commits that were lost.

A running write has such files too, so the youngest that are removed are a day old; the
procedure refuses less. What it would remove is asked first, and refused where that is so much
that the location is rather somebody else's too.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.location_files import (
    LocationFile,
    folder_key,
    list_location,
    list_metadata_folder,
    locations,
    lost_metadata_files,
    metadata_of_another,
    path_key,
)
from lakehouse.iceberg.metadata.own_files import metadata_with_another_uuid
from lakehouse.iceberg.metadata.unknown_commits import find_unknown_commits
from lakehouse.iceberg.upkeep.lost_race import free_lock, run_step, skipped
from lakehouse.iceberg.upkeep.newer_procedures import call_newer
from lakehouse.iceberg.upkeep.readers_view import ReadersView
from lakehouse.iceberg.upkeep.step_result import StepName, StepResult
from lakehouse.iceberg.upkeep.stored_files import (
    FILES_OF_OTHERS,
    StoredFiles,
    bytes_of,
    keeps_all_files,
    missing,
)
from lakehouse.tables.quoting import literal

if TYPE_CHECKING:
    from pyiceberg.table import Table

_STEP: StepName = "remove_orphans"
YOUNGEST = timedelta(days=1)
MOST_SHARE = 0.5
"""Share of the files in a location above which they are not taken for orphans."""


def remove_orphans(
    engine: Engine, table: str, *, older_than: datetime, most_share: float = MOST_SHARE
) -> StepResult:
    """Remove the files in a table's location that no metadata names and that are older than a
    moment, a day at least.

    :param most_share: of the files in the location; where more than that would go, nothing
        does.
    :returns: `skipped` where there are none, or the location is another table's too; `failed`
        where there are too many, or a table that the catalog does not list lies among them;
        `partial` with the paths where files could not be deleted.
    """
    moment = min(older_than, datetime.now(UTC) - YOUNGEST)
    return run_step(table, _STEP, lambda: _remove(engine, table, moment, most_share))


def _remove(engine: Engine, table: str, older_than: datetime, most_share: float) -> StepResult:
    with free_lock(engine, table):
        loaded = engine.catalog.load(table)
        if keeps_all_files(loaded):
            return skipped(table, _STEP, FILES_OF_OTHERS)
        shared_with = tables_in_location(engine, table)
        if shared_with:
            reason = f"its location {loaded.location()} is shared with {', '.join(shared_with)}"
            return skipped(table, _STEP, reason)
        orphans = _call_procedure(engine, table, older_than, dry_run=True)
        listed = list_location(loaded)
        if not orphans:
            reason = f"no file older than {older_than:%Y-%m-%d %H:%M} is without a name"
            return skipped(table, _STEP, reason)
        if other := other_inside(engine, loaded, orphans):
            return StepResult(table, _STEP, "failed", other)
        if len(orphans) > most_share * len(listed):
            return StepResult(table, _STEP, "failed", _too_many(loaded, orphans, len(listed)))
        _call_procedure(engine, table, older_than, dry_run=False)
        return _verified(engine, table, loaded, orphans, listed)


def tables_in_location(engine: Engine, table: str) -> list[str]:
    """Return the other tables that the catalog lists whose files lie in a table's location, or
    whose location it lies in.

    Each new table has a folder of its own. In Glue those of databases in which nothing is declared
    are not looked at (`Engine.within`): one that may not be read would end the upkeep of all. A
    table of theirs in this location is told by its files, see `other_inside`.
    """
    own = folder_key(engine.catalog.load(table).location())
    others, moment = [], engine.catalog.at_one_moment()
    for name in sorted(moment.metadata_locations()):
        if name == table:
            continue
        folders = [folder_key(location) for location in locations(moment.load_for_files(name))]
        if any(folder.startswith(own) or own.startswith(folder) for folder in folders):
            others.append(name)
    return others


def _call_procedure(
    engine: Engine, table: str, older_than: datetime, *, dry_run: bool
) -> list[str]:
    name = literal(f"{engine.catalog.name}.{table}")
    # Listed through the table's own FileIO; Hadoop knows no file system for `s3`.
    rows = call_newer(
        engine,
        f"remove_orphan_files(table => {name}, older_than => {literal(older_than)}, dry_run =>"
        f" {literal(dry_run)}, prefix_listing => true)",
    )
    return [row["orphan_file_location"] for row in rows]


def other_inside(engine: Engine, table: "Table", paths: Collection[str]) -> str:
    """Return why some files of a location are not removed, where they may be those of a table
    that `tables_in_location` does not know; nothing where there is none.

    A table in a folder of its own is told by its metadata.json, and one that has the same folder by
    the UUID in it. One that somebody registered by a
    metadata file of this table writes beside its files, where a metadata.json without a name may
    as well be of a commit that was killed: Glue is asked for the tables of all databases that may
    be read, where there is one of whatever age. Nor are files removed that commits name which the
    catalog has forgotten.

    :param paths: those that would be removed.
    """
    if path := metadata_of_another(table, paths):
        return (
            "another table, of a database in which nothing is declared or of another catalog, lies"
            f" in {table.location()}: {path}; move it elsewhere, or remove its folder where nobody"
            " needs it"
        )
    if path := metadata_with_another_uuid(table, paths):
        return (
            f"another table, of another catalog or dropped, has its metadata among that of this"
            f" one: {path}; give one of them a location of its own, or remove that file where"
            " nobody needs that table"
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
                f"the table {name}, of a database in which nothing is declared, has its files among"
                f" those in {table.location()}: {location}; make it anew elsewhere, and drop it"
                " there without its files"
            )
    return ""


def _unknown_commits(table: "Table") -> str:
    path = find_unknown_commits(table)
    if path is None:
        return ""
    return (
        f"it was written after what the catalog knows, up to {path}, as where the catalog came"
        " from a backup; docs/operations.md says how these rows come back, or move that file away"
        " where nobody needs them"
    )


def _too_many(table: "Table", orphans: list[str], files: int) -> str:
    return (
        f"{len(orphans)} of {files} files in {table.location()} would be removed, such as"
        f" {orphans[0]}; look whose they are, and remove them by hand or allow a larger share"
    )


def _verified(
    engine: Engine,
    table: str,
    before: "Table",
    orphans: list[str],
    listed_before: Mapping[str, LocationFile],
) -> StepResult:
    now = engine.catalog.load(table)
    stored = StoredFiles.of(now)
    listed = stored.listed
    remaining = [path for path in orphans if path_key(path) in listed]
    removed = {path_key(path) for path in orphans} - listed.keys()
    sizes = [listed_before[key] for key in removed if key in listed_before]
    figures = {"removed_files": len(removed), "removed_bytes": bytes_of(sizes)}
    changes = ReadersView.of(before).changes(ReadersView.of(now))
    lost = missing(now, stored.named, listed)
    if lost:
        changes.append(f"{len(lost)} files that are named are not there, such as {lost[0]}")
    if changes:
        return StepResult(table, _STEP, "failed", "; ".join(changes), figures)
    if remaining:
        reason = f"{len(remaining)} files could not be deleted"
        return StepResult(table, _STEP, "partial", reason, figures, tuple(remaining))
    return StepResult(table, _STEP, "done", "", figures)
