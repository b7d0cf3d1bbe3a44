"""What a statement did to a table, in one line, read from the snapshots that it left."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lakehouse.cli.output.printing import count
from lakehouse.cli.sql_text.statements import targets, verb
from lakehouse.errors import TableNotFound
from lakehouse.iceberg.metadata.catalog import Catalog

if TYPE_CHECKING:
    from lakehouse.iceberg.metadata.history import Snapshot

_MERGED = "spark.merge-into.num-target-rows-"
_MERGE_COUNTS = {
    "inserted": ("inserted",),
    "updated": ("matched-updated", "not-matched-by-source-updated"),
    "deleted": ("matched-deleted", "not-matched-by-source-deleted"),
}
_ADDING = ("INSERT", "FROM", "CREATE", "REPLACE")


def list_snapshots(catalog: Catalog, statement: str) -> frozenset[int]:
    """Return the snapshots that the statement's target has before it runs."""
    return frozenset(snapshot.snapshot_id for snapshot in _snapshots(catalog, statement))


def describe_effect(catalog: Catalog, statement: str, before: frozenset[int]) -> str:
    """Say what a statement did: `ok`, and how many rows it changed where the snapshot tells."""
    added = []
    for snapshot in _snapshots(catalog, statement):
        if snapshot.snapshot_id not in before:
            added.append(snapshot)
    return ", ".join(["ok", *describe_changes(verb(statement), added)])


def describe_changes(word: str, added: Sequence["Snapshot"]) -> list[str]:
    """Say how many rows a statement changed.

    An UPDATE by copy-on-write rewrites whole files, and leaves no count of the rows that it
    changed.
    """
    if not added:
        return []
    if word == "MERGE":
        return _describe_merge(added)
    added_rows = _total(added, "added-records")
    removed_rows = _total(added, "deleted-records")
    deleted_by_position = _total(added, "added-position-deletes")
    if word == "DELETE":
        return [f"{count(removed_rows - added_rows + deleted_by_position, 'row')} deleted"]
    if word == "UPDATE" and deleted_by_position:
        return [f"{count(added_rows, 'row')} updated"]
    if word == "UPDATE":
        return [_describe_rewrite(added)]
    if word not in _ADDING:
        return []
    replaced = [f"{count(removed_rows, 'row')} replaced"] if removed_rows else []
    return [f"{count(added_rows, 'row')} inserted", *replaced]


def _describe_rewrite(added: Sequence["Snapshot"]) -> str:
    return f"{count(_total(added, 'deleted-data-files'), 'data file')} rewritten"


def _describe_merge(added: Sequence["Snapshot"]) -> list[str]:
    if all(snapshot.operation == "append" for snapshot in added):
        return [f"{count(_total(added, 'added-records'), 'row')} inserted"]
    # Spark counts from 4.1 on.
    if not any(f"{_MERGED}inserted" in snapshot.summary for snapshot in added):
        return [_describe_rewrite(added)]
    changes = []
    for word, names in _MERGE_COUNTS.items():
        rows = sum(_total(added, f"{_MERGED}{name}") for name in names)
        changes.append(f"{count(rows, 'row')} {word}")
    return changes


def _total(snapshots: Iterable["Snapshot"], key: str) -> int:
    return sum(snapshot.count(key) for snapshot in snapshots)


def _snapshots(catalog: Catalog, statement: str) -> list["Snapshot"]:
    from lakehouse.iceberg.metadata.history import history_of

    tables = [table for table in targets(statement) if "*" not in table]
    if len(tables) != 1:
        return []
    try:
        loaded = catalog.load_for_files(tables[0])
    except TableNotFound:
        return []
    return list(history_of(tables[0], loaded).snapshots.values())
