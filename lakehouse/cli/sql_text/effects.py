"""What a statement did to a table, in one line, read from the snapshots that it left."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lakehouse.cli.output.printing import count
from lakehouse.cli.sql_text.statements import targets, verb
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


def watch(catalog: Catalog, statement: str) -> frozenset[int]:
    """Return the snapshots that the statement's target has before it runs."""
    return frozenset(snapshot.snapshot_id for snapshot in _snapshots(catalog, statement))


def effect(catalog: Catalog, statement: str, before: frozenset[int]) -> str:
    """Say what a statement did: `ok`, and how many rows it changed where the snapshot tells."""
    added = [
        snapshot
        for snapshot in _snapshots(catalog, statement)
        if snapshot.snapshot_id not in before
    ]
    return ", ".join(["ok", *describe(verb(statement), added)])


def describe(word: str, added: Sequence["Snapshot"]) -> list[str]:
    """Say how many rows a statement changed.

    An UPDATE by copy-on-write rewrites whole files, and leaves no count of the rows that it
    changed.
    """
    if not added:
        return []
    if word == "MERGE":
        return _merged(added)
    rows, gone, masked = (
        _total(added, key)
        for key in ("added-records", "deleted-records", "added-position-deletes")
    )
    if word == "DELETE":
        return [f"{count(gone - rows + masked, 'row')} deleted"]
    if word == "UPDATE":
        files = _total(added, "deleted-data-files")
        return [
            (
                f"{count(rows, 'row')} updated"
                if masked
                else f"{count(files, 'data file')} rewritten"
            )
        ]
    if word in _ADDING:
        return [
            f"{count(rows, 'row')} inserted",
            *([f"{count(gone, 'row')} replaced"] if gone else []),
        ]
    return []


def _merged(added: Sequence["Snapshot"]) -> list[str]:
    if all(snapshot.operation == "append" for snapshot in added):
        return [f"{count(_total(added, 'added-records'), 'row')} inserted"]
    # Spark counts from 4.1 on.
    counts = {
        word: [f"{_MERGED}{name}" for name in names] for word, names in _MERGE_COUNTS.items()
    }
    if not any(key in snapshot.summary for snapshot in added for key in counts["inserted"]):
        return [f"{count(_total(added, 'deleted-data-files'), 'data file')} rewritten"]
    return [
        f"{count(sum(_total(added, key) for key in keys), 'row')} {word}"
        for word, keys in counts.items()
    ]


def _total(snapshots: Iterable["Snapshot"], key: str) -> int:
    return sum(snapshot.count(key) for snapshot in snapshots)


def _snapshots(catalog: Catalog, statement: str) -> list["Snapshot"]:
    from lakehouse.iceberg.metadata.history import history_of

    tables = [table for table in targets(statement) if "*" not in table]
    if len(tables) != 1 or not catalog.has(tables[0]):
        return []
    return list(history_of(tables[0], catalog.load(tables[0])).snapshots.values())
