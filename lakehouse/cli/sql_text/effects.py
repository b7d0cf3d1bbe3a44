"""What a statement did to its table, in one line, from the snapshots that it added."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakehouse.cli.output.printing import count
from lakehouse.cli.sql_text.statements import targets
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


def list_snapshots(catalog: Catalog, statement: str) -> "dict[int, Snapshot]":
    """Return the snapshots of the one table that a statement changes; nothing of several."""
    from lakehouse.iceberg.metadata.history import history_of

    tables = [table for _, table in targets(statement) if "." in table]
    if len(tables) != 1:
        return {}
    try:
        return dict(history_of(tables[0], catalog.load_for_files(tables[0])).snapshots)
    except TableNotFound:
        return {}


def describe_effect(catalog: Catalog, statement: str, before: "dict[int, Snapshot]") -> str:
    """Return `ok`, and how many rows a statement changed if its snapshots have the count."""
    after = list_snapshots(catalog, statement)
    added = [after[snapshot_id] for snapshot_id in after.keys() - before.keys()]
    word = targets(statement)[0][0].split()[0] if added else ""
    return ", ".join(["ok", *describe_changes(word, added)])


def describe_changes(word: str, added: Sequence["Snapshot"]) -> list[str]:
    """Return how many rows a statement changed, by its first word such as `DELETE`.

    A copy-on-write UPDATE rewrites entire files, and records no count of changed rows.
    """

    def total(*keys: str) -> int:
        return sum(snapshot.count(key) for snapshot in added for key in keys)

    added_rows, removed_rows = total("added-records"), total("deleted-records")
    position_deletes = total("added-position-deletes")
    rewritten = [f"{count(total('deleted-data-files'), 'data file')} rewritten"]
    if not added or word == "TRUNCATE":
        return []
    if word == "DELETE":
        return [f"{count(removed_rows - added_rows + position_deletes, 'row')} deleted"]
    if word == "UPDATE":
        return [f"{count(added_rows, 'row')} updated"] if position_deletes else rewritten
    if word == "MERGE" and any(snapshot.operation != "append" for snapshot in added):
        # Spark 4.1 and later record the counts.
        if not any(f"{_MERGED}inserted" in snapshot.summary for snapshot in added):
            return rewritten
        return [
            f"{count(total(*(f'{_MERGED}{key}' for key in keys)), 'row')} {verb}"
            for verb, keys in _MERGE_COUNTS.items()
        ]
    replaced = [f"{count(removed_rows, 'row')} replaced"] if removed_rows else []
    return [f"{count(added_rows, 'row')} inserted", *replaced]
