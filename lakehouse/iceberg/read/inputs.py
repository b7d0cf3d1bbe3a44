"""How a table is read, as an asset declares it: the latest state, what was appended since the
last time, or as of a point in its past.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from lakehouse.errors import DeclarationError, UsageError
from lakehouse.tables.declaration import TableDeclaration, name_of

SINCE = ("incremental", "changed_keys")
"""The modes that read what came since the target was last computed."""

Table = str | TableDeclaration
"""A table, or its name where it is declared elsewhere."""


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


def declared_inputs(
    owner: str, inputs: Mapping[str, Input | TableDeclaration]
) -> dict[str, Input]:
    """Return what an asset reads; of a table that is named alone, the `latest` state.

    :param owner: the table that is computed, for errors.
    :raises DeclarationError: names an input that is no such thing.
    """
    declared = {}
    for name, given in inputs.items():
        if not isinstance(given, Input | TableDeclaration):
            raise DeclarationError(
                f"{owner}: input {name} is {_shown(given)}; expected a table, or how one is read,"
                " such as latest(…) or versions_of(…).",
                next_step="Name the TABLE that the asset's file declares.",
            )
        declared[name] = given if isinstance(given, Input) else latest(given)
    return declared


def latest(table: Table, *, by: str | None = None, outside: bool = False) -> Input:
    """Read the current snapshot, as an input that is a table alone is read; with `by`, only the
    run's partitions of that column, or all rows outside of them.

    Of a table that is computed by partitions, an input without `by` makes none of them stale:
    each has what the input held when it was computed.

    Rows of which `by` lies in no partition of the table are quarantined as `has_partition`, or
    fail the check of that name; not where an input of the same table reads what is `outside`,
    which is then the function's to place.
    """
    return Input(name_of(table), "latest", by=by, outside=outside)


def incremental(table: Table, *, by: str | None = None, outside: bool = False) -> Input:
    """Read what was appended since the target was last computed from this table; all of it
    where that can't be told.

    With `by`, only of the run's partitions of that column, or what is outside of them. Of
    partitions that are computed in full all is read: a table that is overwritten, as a whole or
    by partitions, needs `existing_rows` too.
    """
    return Input(name_of(table), "incremental", by=by, outside=outside)


def versions_of(table: Table, *, by: str | None = None) -> Input:
    """Read what arrived, as versions of rows of which the newest counts that the rules accept.

    The function says what a row is, and no more: it returns the frame that it is given, or some
    rows and columns of it. Of these and of the rows that the table has already, wherever they
    are, the write keeps the newest accepted version of each, and the refused ones that no such
    version has corrected. A version that the function leaves out is as if it had not come, so that
    an older one counts. It may be called more than once.

    What a version is, and which is newest, is the table's `versions=`. A merge that declares
    none keeps of each key the row that was delivered last: of the last file, and within it the
    last, or the first where `Merge(within_file="first")` says so.

    :param by: for a table that is overwritten by partitions, the column in which these are
        looked for. A row that belongs to no partition, such as one that cannot be dated, goes
        along with any run; a rule should refuse it.
    """
    return Input(name_of(table), "versions", by=by)


def existing_rows(table: Table, *, by: str, outside: bool = False) -> Input:
    """Read the target's own rows of the run's partitions of that column, to which what is
    `incremental` comes.

    None of partitions that are computed in full: by hand, the first time, by the first run after
    the target's declaration changed, where it can't be told what was appended since, or where
    they were computed since while others stayed stale. With `outside`, read those elsewhere that
    may be versions of what came.

    :param table: the table that the asset computes.
    """
    return Input(name_of(table), "existing_rows", by=by, outside=outside)


def changed_keys(table: Table, *, of: str | Sequence[str], by: str) -> Input:
    """Read the keys of which a row came, went or changed since the target was last computed.

    Rows are compared in the partitions of `by` that were touched since. Where that can't be
    told, all keys that the table or the target has. A target that computes these keys in full, and
    removes those without rows, is as if it had been computed in full.
    """
    keys = (of,) if isinstance(of, str) else tuple(of)
    return Input(name_of(table), "changed_keys", by=by, keys=keys)


def as_of(
    table: Table,
    *,
    snapshot_id: int | None = None,
    timestamp: datetime | None = None,
    tag: str | None = None,
) -> Input:
    """Read a past state of a table: that of a snapshot, of a moment, or of a tag.

    :param snapshot_id: as `lakehouse history` lists it.
    :param timestamp: with a time zone; what readers saw then is read.
    :param tag: the name of a tag, or of a branch.
    :raises UsageError: unless exactly one of the three is given.
    """
    name = name_of(table)
    moments = [value for value in (snapshot_id, timestamp, tag) if value is not None]
    if len(moments) != 1:
        raise UsageError(
            f"as_of({name!r}) got {len(moments)} points in time; expected one of snapshot_id,"
            " timestamp, tag."
        )
    if timestamp is not None and timestamp.tzinfo is None:
        raise UsageError(
            f"as_of({name!r}) got {timestamp.isoformat()} without a time zone; expected one,"
            " such as UTC."
        )
    return Input(name, "as_of", snapshot_id=snapshot_id, timestamp=timestamp, tag=tag)


def _shown(given: object) -> str:
    return repr(given) if isinstance(given, str) else f"of type {type(given).__name__}"
