"""Parse a reference to a snapshot: its id, a tag, a branch, or a timestamp."""

from datetime import datetime

from lakehouse.errors import SnapshotNotFound, UsageError
from lakehouse.iceberg.metadata.history import MAIN, History


def resolve_snapshot_ref(history: History, ref: str | int) -> int | None:
    """Return the snapshot id of a reference; None for `main` of a table without snapshots.

    Names of tags and branches take precedence over ids and timestamps.

    :raises SnapshotNotFound: if there is no such snapshot, tag or branch, or none at that time;
        lists the alternatives.
    :raises UsageError: if a timestamp has no time zone.
    """
    text = str(ref).strip()
    if text in history.refs or text == MAIN:
        return history.refs.get(text)
    if text.isdecimal():
        return _snapshot(history, int(text))
    timestamp = _parse_timestamp(text)
    if timestamp is None:
        raise SnapshotNotFound(
            f"{history.table} has no tag or branch {text!r}, and that is neither a snapshot id"
            f" nor a timestamp; it has {', '.join(sorted(history.refs)) or 'no snapshot'}.",
            next_step=f"`lakehouse history {history.table}` lists its snapshots.",
        )
    if timestamp.tzinfo is None:
        raise UsageError(
            f"{text} has no time zone; expected one, such as {timestamp.isoformat()}Z for UTC."
        )
    return history.at(timestamp).snapshot_id


def published_before(history: History, snapshot_id: int) -> int | None:
    """Return the snapshot that was current before another was published; None if the table was
    empty.

    This is not always its parent: a write can make several commits on its branch, of which only
    the last is published.

    :raises SnapshotNotFound: if that snapshot has expired.
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
                f"Use another one; `lakehouse history {history.table}` lists the retained"
                " snapshots."
            ),
        )
    return None


def _snapshot(history: History, snapshot_id: int) -> int:
    if snapshot_id not in history.snapshots:
        raise SnapshotNotFound(
            f"{history.table} has no snapshot {snapshot_id}; it keeps {len(history.snapshots)}"
            " snapshots.",
            next_step=(
                f"It may have expired; `lakehouse history {history.table}` lists the retained"
                " snapshots."
            ),
        )
    return snapshot_id


def _parse_timestamp(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
