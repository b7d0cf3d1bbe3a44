"""Rows of people leave a table for its readers: from main, and from each branch and tag.

From main they go by position deletes, whatever way the table's own writes have: of the files that
may hold them the telling columns are read, and none is written again: of 5 million rows in 100
files (389 MB) one person goes in 0.35 s, and 1,000 in 1.0 s, on two cores and a local disk, where
a script that writes all files again without them takes 6.9 s.
`remove_from_files` writes the files again afterwards. Branches and tags are for people to look
at, and no procedure of Iceberg cleans up behind one: their files are written again at once, and
a tag is moved to a snapshot without the rows. So are files where all rows of theirs were deleted
before, by delete files: of main a later step writes these again, and of nothing else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakehouse.errors import WriteConflict
from lakehouse.iceberg.commit.branch import drop_dead_branches, is_audit
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.commit.retry import WRITE_ATTEMPTS, Failure, classify, pause
from lakehouse.iceberg.erasure.borrowed_properties import give_back
from lakehouse.iceberg.erasure.commit_files import FileChange, commit_files
from lakehouse.iceberg.erasure.erasure_commits import (
    ErasedRef,
    erased_refs,
    erasure_properties,
)
from lakehouse.iceberg.erasure.person_columns import PersonColumns, person_columns
from lakehouse.iceberg.erasure.person_rows import (
    FileRows,
    NeedsSpark,
    find_rows,
    planned_files,
)
from lakehouse.iceberg.erasure.position_deletes import (
    DeletedPositions,
    has_delete_files,
    needless_delete_files,
    write_position_deletes,
)
from lakehouse.iceberg.erasure.rewritten_file import rewrite_without
from lakehouse.iceberg.erasure.spark_refs import delete_from_ref, goes_whole
from lakehouse.iceberg.erasure.spark_rows import count_by_spark
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import MAIN, History, history_of, read_history
from lakehouse.tables.person import Person
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

_POSITION_DELETES_IN = 2
"""The format version whose position deletes are Parquet files; before it there are none."""
_STAYS_HIDDEN = (
    "its files have rows of people that delete files hide, which Iceberg writes again for main"
    " alone; drop it, or overwrite it with the rows that it shows"
)


@dataclass(frozen=True)
class DeletedRows:
    """What a request took from a table, for its readers."""

    table: str
    rows: Mapping[str, int] = field(default_factory=dict)
    """How many rows this call took, by branch or tag; none where there was nothing to do. Of others
    than main with those that delete files hid.
    """
    of_request: tuple[ErasedRef, ...] = ()
    """What the request took in this call and before, as far as the commits are kept."""
    moved_tags: Mapping[str, int] = field(default_factory=dict)
    """The snapshots that tags point at now, by tag, of those that this call moved."""
    dropped: tuple[str, ...] = ()
    """Tags and refused candidates that had rows and were dropped, of a table whose files Spark
    alone writes.
    """
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Branches that still may have rows, each with the reason."""


@dataclass(frozen=True)
class _Counted:
    """How many rows of some people a branch or tag has."""

    seen: int
    hidden: int = 0
    """Those that were deleted already by delete files; not of main, where a later step writes such
    files again whoever's the rows are.
    """


@dataclass(frozen=True)
class _Taken:
    """How many rows of some people went from a branch or tag, and how many could not."""

    rows: int = 0
    left: int = 0


def count_rows(
    engine: Engine, table: IcebergTable, persons: Sequence[Person]
) -> dict[str, int]:
    """Return how many rows of some people each branch and tag of a table has, by its name; those
    without any are left out. Of others than main with those that delete files hide.

    Starts Spark only for a table that nothing else reads as it should be.
    """
    if not engine.catalog.has(table.name):
        return {}
    loaded = engine.catalog.load(table.name)
    columns = person_columns(table, loaded, persons)
    by_snapshot: dict[int, list[str]] = {}
    for name, ref in loaded.metadata.refs.items():
        by_snapshot.setdefault(ref.snapshot_id, []).append(name)
    counts: dict[str, int] = {}
    for names in by_snapshot.values():
        for name, counted in _counts(engine, loaded, columns, names).items():
            counts[name] = counted.seen + counted.hidden
    return {name: rows for name, rows in sorted(counts.items()) if rows}


def delete_rows(
    engine: Engine, table: IcebergTable, persons: Sequence[Person], request: str
) -> DeletedRows:
    """Delete the rows of some people from main, and from every other branch and tag of a table.

    One commit for each that has any, stamped with the request; what has none is left as it is,
    so that a second call finds nothing to do. The branch of a write that is alive is skipped
    and named, and so is a branch of people that keeps files which nothing writes again. A table
    that is not there yet has no rows.

    :raises TableBusy: when another process holds the table for longer than a writer waits.
    :raises WriteConflict: when other writers kept winning.
    """
    if not engine.catalog.has(table.name):
        return DeletedRows(table.name)
    with table_lock(engine, table.name) as log:
        give_back(engine, table.name)
        drop_dead_branches(engine, table.name, log)
        refs = read_history(engine, table.name).refs
        rows, moved_tags, hidden = {}, {}, {}
        for ref in sorted(refs, key=lambda name: (name != MAIN, name)):
            if is_audit(ref):
                continue
            taken = _delete_from(engine, table, persons, request, ref)
            rows[ref] = taken.rows
            if taken.left:
                hidden[ref] = _STAYS_HIDDEN
        after = read_history(engine, table.name)
        dropped = tuple(ref for ref in rows if rows[ref] and ref not in after.refs)
        for tag in _tags(engine, table.name):
            if rows.get(tag):
                moved_tags[tag] = after.refs[tag]
        return DeletedRows(
            table.name,
            rows={ref: count for ref, count in rows.items() if count},
            of_request=erased_refs(after, request),
            moved_tags=moved_tags,
            dropped=dropped,
            skipped={**_alive(after), **hidden},
        )


def _alive(history: History) -> dict[str, str]:
    reason = "it stages a write of another host, which may be alive"
    return dict.fromkeys(filter(is_audit, history.refs), reason)


def _tags(engine: Engine, table: str) -> list[str]:
    refs = engine.catalog.load(table).metadata.refs
    return [name for name, ref in refs.items() if ref.snapshot_ref_type == "tag"]


def _counts(
    engine: Engine, loaded: "Table", columns: PersonColumns, refs: Sequence[str]
) -> dict[str, _Counted]:
    """Return how many rows of some people each of some branches and tags has, which point at one
    snapshot.
    """
    snapshot_id = loaded.metadata.refs[refs[0]].snapshot_id
    try:
        files = find_rows(loaded, columns, snapshot_id)
    except NeedsSpark:
        return {ref: _counted_by_spark(engine, loaded, columns, ref) for ref in refs}
    seen = sum(file.rows for file in files)
    hidden = sum(file.hidden_rows for file in files)
    return {ref: _Counted(seen, 0 if ref == MAIN else hidden) for ref in refs}


def _counted_by_spark(
    engine: Engine, loaded: "Table", columns: PersonColumns, ref: str
) -> _Counted:
    with_dropped = goes_whole(loaded, ref)
    seen = count_by_spark(engine, loaded, columns, ref, with_dropped=with_dropped)
    if ref == MAIN or not has_delete_files(loaded, loaded.metadata.refs[ref].snapshot_id):
        return _Counted(seen)
    hidden = count_by_spark(
        engine, loaded, columns, ref, with_dropped=with_dropped, hidden=True
    )
    return _Counted(seen, hidden)


def _delete_from(
    engine: Engine, table: IcebergTable, persons: Sequence[Person], request: str, ref: str
) -> _Taken:
    """Delete the rows of some people from a branch or tag, and return how many they were; tried
    again where another commit comes first.
    """
    for number in range(1, WRITE_ATTEMPTS + 1):
        try:
            return _attempt(engine, table, persons, request, ref)
        except Exception as error:
            failure = classify(error)
            if failure is Failure.OTHER:
                raise
        pause(number)
    raise WriteConflict(
        f"{table.name}: rows were not erased from {ref}: other writers came first"
        f" {WRITE_ATTEMPTS} times, the last time since {failure.value}.",
        next_step="Run the erasure again when the table is less busy; it goes on from here.",
    )


def _attempt(
    engine: Engine, table: IcebergTable, persons: Sequence[Person], request: str, ref: str
) -> _Taken:
    loaded = engine.catalog.load(table.name)
    if ref not in loaded.metadata.refs:
        return _Taken()
    columns = person_columns(table, loaded, persons)
    snapshot_id = loaded.metadata.refs[ref].snapshot_id
    try:
        if loaded.format_version != _POSITION_DELETES_IN:
            raise NeedsSpark(f"its format version is {loaded.format_version}")
        found = find_rows(loaded, columns, snapshot_id)
    except NeedsSpark:
        return _delete_by_spark(engine, loaded, columns, request, ref)
    if ref == MAIN:
        found = [file for file in found if file.rows]
        rows = sum(file.rows for file in found)
    else:
        rows = sum(file.rows + file.hidden_rows for file in found)
    if found:
        history = history_of(table.name, loaded)
        properties = erasure_properties(history, ref, request, rows)
        if ref == MAIN:
            _delete_positions(loaded, found, properties)
        else:
            _rewrite_files(loaded, ref, found, properties)
    return _Taken(rows)


def _delete_positions(
    loaded: "Table", found: Sequence[FileRows], properties: Mapping[str, str]
) -> None:
    deletes = [write_position_deletes(loaded, file.file, file.positions) for file in found]
    commit_files(
        loaded,
        MAIN,
        FileChange(added=deletes),
        properties,
        operation="delete",
        rewrites_manifests=False,
    )


def _rewrite_files(
    loaded: "Table", ref: str, found: Sequence[FileRows], properties: Mapping[str, str]
) -> None:
    """Write the files of a branch or tag again without the rows, and without those that were
    deleted before.
    """
    added = []
    for file in found:
        rewritten = rewrite_without(loaded, file.file, file.gone)
        if rewritten is not None:
            added.append(rewritten)
    removed = [file.file for file in found]
    is_seen = any(file.rows for file in found)
    commit_files(
        loaded,
        ref,
        FileChange(added, [*removed, *_needless(loaded, ref, found)]),
        properties,
        operation="overwrite" if is_seen else "replace",
        rewrites_manifests=True,
    )


def _needless(loaded: "Table", ref: str, found: Sequence[FileRows]) -> "list[DataFile]":
    """Return the delete files that are of no file but those that are written again."""
    delete_files = {file for rewritten in found for file in rewritten.delete_files}
    if not delete_files:
        return []
    snapshot_id = loaded.metadata.refs[ref].snapshot_id
    live = {task.file.file_path for task in planned_files(loaded, snapshot_id)}
    live -= {rewritten.file.file_path for rewritten in found}
    return needless_delete_files(DeletedPositions(loaded), delete_files, live)


def _delete_by_spark(
    engine: Engine, loaded: "Table", columns: PersonColumns, request: str, ref: str
) -> _Taken:
    name = ".".join(loaded.name())
    before = _counts(engine, loaded, columns, [ref])[ref]
    is_dropped = goes_whole(loaded, ref)
    if before.seen or (is_dropped and before.hidden):
        properties = erasure_properties(history_of(name, loaded), ref, request, before.seen)
        delete_from_ref(engine, loaded, columns, ref, properties)
    left = 0
    if before.hidden and not is_dropped:
        # A file with a row that was seen is written again, without those that were hidden.
        left = _counts(engine, engine.catalog.load(name), columns, [ref])[ref].hidden
    return _Taken(before.seen + before.hidden - left, left)
