"""A snapshot of a table as a person refers to it: by its id, a tag or branch, or a moment with
its time zone.
"""

from datetime import datetime

from lakehouse.errors import SnapshotNotFound, UsageError
from lakehouse.iceberg.metadata.history import MAIN, History


def resolve_snapshot_ref(history: History, ref: str | int) -> int | None:
    """Return the snapshot that is referred to; None for `main` of a table that has no
    snapshot yet.

    A tag or branch is what it is called, also where that reads like a number or a date.

    :raises SnapshotNotFound: when there is no such snapshot, tag, branch or moment; lists what
        there is.
    :raises UsageError: when a moment has no time zone.
    """
    text = str(ref).strip()
    if text in history.refs or text == MAIN:
        return history.refs.get(text)
    if text.isdecimal():
        return _snapshot(history, int(text))
    moment = _moment(text)
    if moment is None:
        raise SnapshotNotFound(
            f"{history.table} has no tag or branch {text!r}, and that is neither a snapshot id"
            f" nor a moment; it has {', '.join(sorted(history.refs)) or 'no snapshot'}.",
            next_step=f"`lakehouse history {history.table}` lists its snapshots.",
        )
    if moment.tzinfo is None:
        raise UsageError(
            f"{text} has no time zone; expected one, such as {moment.isoformat()}Z for UTC."
        )
    return history.at(moment).snapshot_id


def published_before(history: History, snapshot_id: int) -> int | None:
    """Return what readers saw before a snapshot was published; None where the table was empty.

    That is not always its parent: a write may leave several commits on its branch, and only the
    last is ever seen.

    :raises SnapshotNotFound: when it has expired.
    """
    published = {published_id for _, published_id in history.log}
    ancestors = list(history.ancestors(snapshot_id))
    for ancestor in ancestors[1:]:
        if ancestor.snapshot_id in published:
            return ancestor.snapshot_id
    if ancestors[-1].parent_id is not None:
        raise SnapshotNotFound(
            f"{history.table} no longer keeps the snapshot before {snapshot_id}:"
            f" {ancestors[-1].parent_id} has expired.",
            next_step=(
                f"Name another one; `lakehouse history {history.table}` lists those that are"
                " kept."
            ),
        )
    return None


def _snapshot(history: History, snapshot_id: int) -> int:
    if snapshot_id not in history.snapshots:
        raise SnapshotNotFound(
            f"{history.table} has no snapshot {snapshot_id}; it keeps {len(history.snapshots)}"
            " snapshots.",
            next_step=(
                f"It may have expired; `lakehouse history {history.table}` lists those that are"
                " kept."
            ),
        )
    return snapshot_id


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
