"""Input declarations of an asset: the current state of a table, its new rows, or a past state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from lakehouse.errors import DeclarationError, UsageError
from lakehouse.tables.declaration import TableDeclaration, name_of

SINCE = ("incremental", "changed_keys")
"""Modes that read rows that arrived since the target was last computed."""

Table = str | TableDeclaration
"""A table, or the name of a table that is declared in another file."""


@dataclass(frozen=True)
class Input:
    """One input table of an asset.

    `by` is the column that is matched with the run's partitions; with `outside`, all other rows
    are read.
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
    """Return the inputs of an asset; a plain table is read as `latest`.

    :param owner: the computed table, for errors.
    :raises DeclarationError: names an invalid input.
    """
    declared = {}
    for name, value in inputs.items():
        if not isinstance(value, Input | TableDeclaration):
            raise DeclarationError(
                f"{owner}: input {name} is {_shown(value)}; expected a table, or how one is read,"
                " such as latest(…) or versions_of(…).",
                next_step="Name the TABLE that the asset's file declares.",
            )
        declared[name] = value if isinstance(value, Input) else latest(value)
    return declared


def latest(table: Table, *, by: str | None = None, outside: bool = False) -> Input:
    """Read the current snapshot, which is also the default for a plain table.

    With `by`, only rows in the run's partitions are read, or only rows outside of them. In a
    partitioned table, an input without `by` makes no partition stale: each keeps the input's
    state at the time of its run.

    Rows whose `by` is in no partition are quarantined as `has_partition`, or fail the check of
    that name. With another input of the same table that reads `outside`, the function has to
    handle them.
    """
    return Input(name_of(table), "latest", by=by, outside=outside)


def incremental(table: Table, *, by: str | None = None, outside: bool = False) -> Input:
    """Read rows appended since the target was last computed from this table; all rows if
    unknown.

    With `by`, only rows in the run's partitions, or outside of them. Partitions that are
    recomputed read all rows. A table that is overwritten, in full or by partitions, also needs
    `existing_rows`.
    """
    return Input(name_of(table), "incremental", by=by, outside=outside)


def versions_of(table: Table, *, by: str | None = None) -> Input:
    """Read arrived rows as versions; the newest version that passes the rules is kept.

    The function only selects rows and columns: it returns its input DataFrame, or a part of it.
    From these rows and the table's existing rows in any partition, the write keeps the newest
    accepted version of each key, and the rejected versions that no newer one corrects. A
    version that the function removes is ignored, so that an older one is kept. The function can
    be called several times.

    The table's `versions=` defines versions and their order. A merge without it keeps, for each
    key, the last delivered row: of the last file, and within it the last row, or the first with
    `Merge(within_file="first")`.

    :param by: for a table that is overwritten by partitions, the column that is matched with
        them. Rows in no partition, such as rows without a date, are processed with every run; a
        rule should reject them.
    """
    return Input(name_of(table), "versions", by=by)


def existing_rows(table: Table, *, by: str, outside: bool = False) -> Input:
    """Read the target's own rows in the run's partitions, to be combined with `incremental`
    rows.

    Recomputed partitions read none: runs started by a user, first runs, the first run after a
    change of the declaration, runs whose new rows are unknown, and partitions that were
    computed ahead of the watermark. With `outside`, the read contains rows in other partitions
    that can be versions of the new rows.

    :param table: the table that the asset computes.
    """
    return Input(name_of(table), "existing_rows", by=by, outside=outside)


def changed_keys(table: Table, *, of: str | Sequence[str], by: str) -> Input:
    """Read the keys of rows that were added, removed or changed since the target was last
    computed.

    Rows are compared in the partitions of `by` that were changed. If unknown, all keys of the
    table and the target are read. The target must recompute these keys and remove those without
    rows; the result then equals a full recompute.
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
    """Read a past state of a table, by snapshot id, timestamp or tag.

    :param snapshot_id: from `lakehouse history`.
    :param timestamp: with a time zone; the snapshot that was current at this time is read.
    :param tag: the name of a tag or branch.
    :raises UsageError: unless exactly one of the three is set.
    """
    name = name_of(table)
    points = [value for value in (snapshot_id, timestamp, tag) if value is not None]
    if len(points) != 1:
        raise UsageError(
            f"as_of({name!r}) got {len(points)} points in time; expected one of snapshot_id,"
            " timestamp, tag."
        )
    if timestamp is not None and timestamp.tzinfo is None:
        raise UsageError(
            f"as_of({name!r}) got {timestamp.isoformat()} without a time zone; expected one,"
            " such as UTC."
        )
    return Input(name, "as_of", snapshot_id=snapshot_id, timestamp=timestamp, tag=tag)


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, str) else f"of type {type(value).__name__}"
