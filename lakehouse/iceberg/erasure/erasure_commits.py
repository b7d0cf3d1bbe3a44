"""Commit properties of an erasure: the request, the branch or tag, and the number of rows."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.branch import new_write_id
from lakehouse.iceberg.commit.kept_watermarks import carried_properties
from lakehouse.iceberg.metadata.commit_record import PREFIX, CommitProperties
from lakehouse.iceberg.metadata.partition_metadata import values_changed_by
from lakehouse.iceberg.metadata.snapshots import MAIN, History, Snapshot, read_history

REQUEST_PROPERTY = f"{PREFIX}erasure-request"
REF_PROPERTY = f"{PREFIX}erased-from"
ROWS_PROPERTY = f"{PREFIX}erased-rows"
"""Keys of a snapshot's summary."""


@dataclass(frozen=True)
class ErasedRef:
    """The rows that a commit of a request deleted from a branch or tag."""

    ref: str
    rows: int
    snapshot_id: int


def erasure_properties(history: History, ref: str, request: str, rows: int) -> dict[str, str]:
    """Return the properties of a commit that deletes rows, with inputs and run of its head.

    :param rows: their number; 0 for a commit that only rewrites files.
    """
    if ref == MAIN:
        commit = carried_properties(history, "erasure")
    else:
        head = history.head(ref)
        known = head.commit if head and head.commit else CommitProperties("erasure", "")
        commit = replace(known, kind="erasure", write_id=new_write_id())
    own = {REQUEST_PROPERTY: request, REF_PROPERTY: ref, ROWS_PROPERTY: str(rows)}
    return {**commit.to_summary(), **own}


def erased_refs(history: History, request: str) -> tuple[ErasedRef, ...]:
    """Return the deletions of a request in a table, oldest first, if the commits are retained."""
    erased = []
    for snapshot in _of_request(history, request):
        rows = int(snapshot.summary.get(ROWS_PROPERTY, 0))
        if rows:
            ref = snapshot.summary[REF_PROPERTY]
            erased.append(ErasedRef(ref, rows, snapshot.snapshot_id))
    return tuple(erased)


def rows_erased_between(history: History, since_id: int, until_id: int) -> int:
    """Count the rows that erasures deleted between two snapshots, if these are retained."""
    since = history.between(since_id, until_id) or []
    return _rows(snapshot for snapshot in since if snapshot.is_erasure)


def touched_partitions(
    engine: Engine, table: str, request: str, column: str, rows: int
) -> set[Any] | None:
    """Return the partition values of the rows that a request deleted from main, if known.

    :param column: the `by` of the reader's input.
    :param rows: the number of rows that the request deleted from main.
    """
    loaded = engine.catalog.load(table)
    snapshots = [
        snapshot
        for snapshot in _of_request(read_history(engine, table), request)
        if snapshot.summary.get(REF_PROPERTY) == MAIN and snapshot.operation != "replace"
    ]
    if _rows(snapshots) < rows:
        return None
    values: set[Any] = set()
    for snapshot in snapshots:
        try:
            values |= values_changed_by(loaded, snapshot.snapshot_id, column)
        except (DeclarationError, ValueError):
            return None
    return values


def _of_request(history: History, request: str) -> list[Snapshot]:
    of_request = [
        snapshot
        for snapshot in history.snapshots.values()
        if snapshot.summary.get(REQUEST_PROPERTY) == request
    ]
    return sorted(of_request, key=lambda snapshot: snapshot.committed_at)


def _rows(snapshots: Iterable[Snapshot]) -> int:
    return sum(int(snapshot.summary.get(ROWS_PROPERTY, 0)) for snapshot in snapshots)
