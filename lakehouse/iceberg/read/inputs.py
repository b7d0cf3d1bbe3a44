"""How a table is read, as an asset declares it: the latest state, what was appended since the
last time, or as of a point in its past.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from lakehouse.errors import UsageError

SINCE = ("incremental", "changed_keys")
"""The modes that read what came since the target was last computed."""


@dataclass(frozen=True)
class Input:
    """What an asset reads of a table.

    `by` is the column that the run's partitions are looked for in; with `outside`, all rows but
    theirs are read.
    """

    table: str
    mode: Literal[
        "latest", "incremental", "versions", "existing_rows", "changed_keys", "as_of"
    ] = "latest"
    by: str | None = None
    outside: bool = False
    keys: tuple[str, ...] = ()
    snapshot_id: int | None = None
    timestamp: datetime | None = None
    tag: str | None = None


def latest(table: str, *, by: str | None = None, outside: bool = False) -> Input:
    """Read the current snapshot; with `by`, only the run's partitions of that column, or all
    rows outside of them.

    Rows of which `by` lies in no partition of the table are quarantined as `has_partition`, or
    fail the check of that name; not where an input of the same table reads what is `outside`,
    which is then the function's to place.
    """
    return Input(table, "latest", by=by, outside=outside)


def incremental(table: str, *, by: str | None = None, outside: bool = False) -> Input:
    """Read what was appended since the target was last computed from this table; all of it
    where that can't be told.

    With `by`, only of the run's partitions of that column, or what is outside of them. Of
    partitions that are computed in full all is read: a table that is overwritten by partitions
    needs `existing_rows` too.
    """
    return Input(table, "incremental", by=by, outside=outside)


def versions_of(table: str, *, by: str | None = None) -> Input:
    """Read what arrived, as versions of rows of which the newest counts that the rules accept.

    The function says what a row is, and no more: it returns the frame that it is given, or some
    rows and columns of it. Of these and of the rows that the table has already, wherever they
    are, the write keeps the newest accepted version of each, and the refused ones that no such
    version has corrected. It may be called more than once.

    What a version is, and which is newest, is the table's `versions=`. A merge that declares
    none keeps of each key the row of the last file, and within a file the first.

    :param by: for a table that is overwritten by partitions, the column in which these are
        looked for. A row that belongs to no partition, such as one that cannot be dated, goes
        along with any run; a rule should refuse it.
    """
    return Input(table, "versions", by=by)


def existing_rows(table: str, *, by: str, outside: bool = False) -> Input:
    """Read the target's own rows of the run's partitions of that column, to which what is
    `incremental` comes.

    None of partitions that are computed in full: by hand, the first time, after the target's
    declaration changed, or where it can't be told what was appended since. With `outside`, read
    those elsewhere that may be versions of what came.
    """
    return Input(table, "existing_rows", by=by, outside=outside)


def changed_keys(table: str, *, of: str | Sequence[str], by: str) -> Input:
    """Read the keys of which a row came, went or changed since the target was last computed.

    Rows are compared in the partitions of `by` that were touched since. Where that can't be
    told, all keys that the table or the target has. A target that computes these keys in full, and
    removes those without rows, is as if it had been computed in full.
    """
    return Input(table, "changed_keys", by=by, keys=(of,) if isinstance(of, str) else tuple(of))


def as_of(
    table: str,
    *,
    snapshot_id: int | None = None,
    timestamp: datetime | None = None,
    tag: str | None = None,
) -> Input:
    """Read a past state: of a snapshot id, of a moment (with its time zone), or of a tag.

    :raises UsageError: unless exactly one of the three is given.
    """
    moments = [value for value in (snapshot_id, timestamp, tag) if value is not None]
    if len(moments) != 1:
        raise UsageError(
            f"as_of({table!r}) got {len(moments)} points in time; expected one of snapshot_id,"
            " timestamp, tag."
        )
    if timestamp is not None and timestamp.tzinfo is None:
        raise UsageError(
            f"as_of({table!r}) got {timestamp.isoformat()} without a time zone; expected one,"
            " such as UTC."
        )
    return Input(table, "as_of", snapshot_id=snapshot_id, timestamp=timestamp, tag=tag)
