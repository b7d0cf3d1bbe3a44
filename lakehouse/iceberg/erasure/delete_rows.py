"""Deletes the rows of data subjects from main and from each branch and tag of a table.

PyArrow finds the rows as positions in data files. On main, position deletes remove them for
readers, whatever the table's row-level mode: of 5 million rows in 100 files (389 MB), one person
is deleted in 0.35 s and 1,000 in 1.0 s, where a script that rewrites all files takes 6.9 s.
`remove_from_files` rewrites the files afterwards. Files of branches and tags are rewritten at
once, since no procedure of Iceberg cleans a branch; a tag moves to a snapshot without the rows.
Where PyIceberg cannot write, Spark deletes the same positions.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import uuid4

from lakehouse.errors import WriteConflict
from lakehouse.iceberg.commit.branch import (
    drop_abandoned_branches,
    drop_branch,
    is_audit,
    is_refused,
)
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.commit.retry import (
    WRITE_ATTEMPTS,
    Failure,
    classify,
    pause,
    retry_on_refs,
)
from lakehouse.iceberg.commit.snapshot_properties import session_with
from lakehouse.iceberg.erasure.borrowed_properties import borrowed_properties, give_back
from lakehouse.iceberg.erasure.commit_files import FileChange, commit_files
from lakehouse.iceberg.erasure.erasure_commits import ErasedRef, erased_refs, erasure_properties
from lakehouse.iceberg.erasure.find_rows import FileRows, find_rows, planned_files
from lakehouse.iceberg.erasure.person_columns import person_columns
from lakehouse.iceberg.erasure.position_deletes import (
    DeletedPositions,
    needless_delete_files,
    write_position_deletes,
)
from lakehouse.iceberg.erasure.rewritten_file import rewrite_without
from lakehouse.iceberg.metadata.arrow_frames import arrow_to_spark
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import MAIN, History, history_of, read_history
from lakehouse.iceberg.metadata.pyiceberg_internals import WRITABLE_FORMATS
from lakehouse.tables.person import Person
from lakehouse.tables.quoting import identifier
from lakehouse.tables.row_level import COPY_ON_WRITE, DELETE_PROPERTY
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
class _Taken:
    """How many rows of some people went from a branch or tag, and how many could not."""

    rows: int = 0
    left: int = 0


def count_rows(
    engine: Engine, table: IcebergTable, persons: Sequence[Person]
) -> dict[str, int]:
    """Return how many rows of some people each branch and tag of a table has, by its name; those
    without any are left out. Of others than main with those that delete files hide.
    """
    if not engine.catalog.has(table.name):
        return {}
    loaded = engine.catalog.load(table.name)
    columns = person_columns(table, loaded, persons)
    found: dict[int, list[FileRows]] = {}
    counts: dict[str, int] = {}
    for name, ref in sorted(loaded.metadata.refs.items()):
        if ref.snapshot_id not in found:
            found[ref.snapshot_id] = find_rows(loaded, columns, ref.snapshot_id)
        rows = _row_count(found[ref.snapshot_id], name)
        if rows:
            counts[name] = rows
    return counts


def _row_count(files: Sequence[FileRows], ref: str) -> int:
    """Count rows of data subjects. Hidden rows of main are not included: a later step rewrites
    all files of main that have delete files.
    """
    hidden_rows = 0 if ref == MAIN else sum(file.hidden_rows for file in files)
    return hidden_rows + sum(file.rows for file in files)


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
        drop_abandoned_branches(engine, table.name, log)
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
    found = find_rows(loaded, columns, loaded.metadata.refs[ref].snapshot_id)
    rows = _row_count(found, ref)
    if not rows:
        return _Taken()
    properties = erasure_properties(history_of(table.name, loaded), ref, request, rows)
    if ref == MAIN and loaded.format_version == _POSITION_DELETES_IN:
        _delete_positions(loaded, [file for file in found if file.rows], properties)
    elif _needs_spark(loaded, found):
        _delete_by_spark(engine, loaded, ref, found, properties)
        left = _left_by_spark(engine, table, persons, ref)
        return _Taken(rows - left, left)
    else:
        _rewrite_files(loaded, ref, found, properties)
    return _Taken(rows)


def _left_by_spark(
    engine: Engine, table: IcebergTable, persons: Sequence[Person], ref: str
) -> int:
    """Return how many rows a branch still contains: those in files in which delete files hide
    all rows of the data subjects, which Spark does not rewrite.

    :raises CommitFailedException: if rows are still visible, since another commit came first.
    """
    from pyiceberg.exceptions import CommitFailedException

    loaded = engine.catalog.load(table.name)
    if ref not in loaded.metadata.refs:
        return 0
    columns = person_columns(table, loaded, persons)
    found = find_rows(loaded, columns, loaded.metadata.refs[ref].snapshot_id)
    if any(file.rows for file in found):
        raise CommitFailedException(f"{table.name}: rows were written to {ref} meanwhile")
    return _row_count(found, ref)


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


def _needs_spark(loaded: "Table", files: Sequence[FileRows]) -> bool:
    """Whether only Spark can rewrite some files of a table."""
    from pyiceberg.manifest import FileFormat

    formats = {file.file.file_format for file in files}
    return loaded.format_version not in WRITABLE_FORMATS or formats != {FileFormat.PARQUET}


def _delete_by_spark(
    engine: Engine,
    loaded: "Table",
    ref: str,
    files: Sequence[FileRows],
    properties: Mapping[str, str],
) -> None:
    """Delete rows from main or a branch. Drop a tag or a rejected candidate: no procedure of
    Iceberg can clean its manifests.

    The table's properties determine how rows of main are deleted. Files of a branch are
    rewritten, since no upkeep compacts a branch.
    """
    name = ".".join(loaded.name())
    if _is_dropped_whole(loaded, ref):
        _drop(engine, loaded, ref)
    elif any(file.rows for file in files):
        copy_on_write = borrowed_properties(engine, name, {DELETE_PROPERTY: COPY_ON_WRITE})
        with nullcontext() if ref == MAIN else copy_on_write:
            _delete_by_position(engine, name, ref, files, properties)


def _is_dropped_whole(loaded: "Table", ref: str) -> bool:
    """Whether `_delete_by_spark` drops a tag or branch."""
    return loaded.metadata.refs[ref].snapshot_ref_type == "tag" or is_refused(ref)


def _drop(engine: Engine, loaded: "Table", ref: str) -> None:
    table = ".".join(loaded.name())
    if is_refused(ref):
        drop_branch(engine, table, ref)
        return
    statement = (
        f"ALTER TABLE {engine.catalog.sql_name(table)} DROP TAG IF EXISTS {identifier(ref)}"
    )
    retry_on_refs(
        lambda: engine.sql(statement),
        done=lambda: ref not in read_history(engine, table).refs,
    )


def _delete_by_position(
    engine: Engine,
    table: str,
    ref: str,
    files: Sequence[FileRows],
    properties: Mapping[str, str],
) -> None:
    target = engine.catalog.sql_name(table, branch=None if ref == MAIN else ref)
    with _view_of(engine, files) as view, session_with(engine.spark, properties):
        engine.sql(
            f"DELETE FROM {target} WHERE (_file, _pos) IN (SELECT file, position FROM {view})"
        )


@contextmanager
def _view_of(engine: Engine, files: Sequence[FileRows]) -> Iterator[str]:
    """Register the positions as a temporary view; no personal value is in the statement."""
    import pyarrow as pa

    paths = [file.file.file_path for file in files for _ in range(file.rows)]
    positions = pa.concat_arrays([file.positions for file in files])
    rows = pa.table({"file": pa.array(paths, pa.string()), "position": positions})
    view = f"erased_positions_{uuid4().hex}"
    arrow_to_spark(engine.spark, rows).createOrReplaceTempView(view)
    try:
        yield view
    finally:
        engine.spark.catalog.dropTempView(view)
