"""What the commits of an erasure say, and what can be told from them later: of which request,
from which ref, how many rows; never whose.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.commit.branch import new_write_id
from lakehouse.iceberg.commit.kept_watermarks import carried_properties
from lakehouse.iceberg.metadata.changed_partitions import values_changed_by
from lakehouse.iceberg.metadata.commit_properties import PREFIX, CommitProperties
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import MAIN, History, Snapshot, read_history

REQUEST_PROPERTY = f"{PREFIX}erasure-request"
REF_PROPERTY = f"{PREFIX}erased-from"
ROWS_PROPERTY = f"{PREFIX}erased-rows"
"""Keys of a snapshot's summary."""


@dataclass(frozen=True)
class ErasedRef:
    """What a request's commit took from a branch or tag."""

    ref: str
    rows: int
    snapshot_id: int


def erasure_properties(history: History, ref: str, request: str, rows: int) -> dict[str, str]:
    """Return the properties of a commit that takes rows from a ref; what it was computed from,
    and by which run, it says as its head did.

    :param rows: how many; 0 for a commit that but cleans up after others.
    """
    if ref == MAIN:
        commit = carried_properties(history, "erasure")
    else:
        head = history.head(ref)
        known = head.commit if head and head.commit else CommitProperties("erasure", "")
        commit = replace(known, kind="erasure", write_id=new_write_id())
    said = {REQUEST_PROPERTY: request, REF_PROPERTY: ref, ROWS_PROPERTY: str(rows)}
    return {**commit.to_summary(), **said}


def erased_refs(history: History, request: str) -> tuple[ErasedRef, ...]:
    """Return what a request took from the refs of a table so far, oldest first, as far as the
    commits are kept.
    """
    erased = []
    for snapshot in _of_request(history, request):
        rows = int(snapshot.summary.get(ROWS_PROPERTY, 0))
        if rows:
            ref = snapshot.summary[REF_PROPERTY]
            erased.append(ErasedRef(ref, rows, snapshot.snapshot_id))
    return tuple(erased)


def rows_erased_between(history: History, since_id: int, until_id: int) -> int:
    """Return how many rows erasures took from a line of snapshots after one of them up to another,
    as far as it is kept.
    """
    since = history.between(since_id, until_id) or []
    return sum(
        int(snapshot.summary.get(ROWS_PROPERTY, 0)) for snapshot in since if snapshot.is_erasure
    )


def touched_partitions(
    engine: Engine, table: str, request: str, column: str, rows: int
) -> set[Any] | None:
    """Return the values of a partition column whose rows a request took from main: what is
    computed from them without a subject has to be computed anew.

    The same however often it is asked. None where the partitioning does not tell, or the commits
    do no longer, so that any may be.

    :param column: by which the reader's partitions are looked for, its input's `by`.
    :param rows: how many rows the request took from main; commits of fewer are not all.
    """
    loaded = engine.catalog.load(table)
    snapshots = []
    for snapshot in _of_request(read_history(engine, table), request):
        if snapshot.summary.get(REF_PROPERTY) == MAIN and snapshot.operation != "replace":
            snapshots.append(snapshot)
    if sum(int(snapshot.summary.get(ROWS_PROPERTY, 0)) for snapshot in snapshots) < rows:
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
        snapshot for snapshot in history.snapshots.values() if _is_of(snapshot.summary, request)
    ]
    return sorted(of_request, key=lambda snapshot: snapshot.committed_at)


def _is_of(summary: Mapping[str, str], request: str) -> bool:
    return summary.get(REQUEST_PROPERTY) == request
