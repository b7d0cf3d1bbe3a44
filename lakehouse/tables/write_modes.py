"""How a table is written: what a write does to the rows that the table has, and which version of
a row counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Literal, Protocol, get_args

from lakehouse.errors import DeclarationError
from lakehouse.tables.column import tuple_of
from lakehouse.tables.time_windows import TimeWindows, Unit


@dataclass(frozen=True)
class Append:
    """Rows are added. Rows whose `once_by` values the table already has are left out, so that a
    re-run adds nothing.
    """

    once_by: Sequence[str] | None = None
    """The columns; left out, those of a delivery (`_source_file`, `_source_sha256`), where the
    table has them. `()` says that each run adds its rows, and is for what is computed from no
    other table. A row without a value in one of them is known by the file and row that it comes
    from; a run that computes one without these too is refused.
    """

    def __post_init__(self) -> None:
        if self.once_by is not None:
            object.__setattr__(self, "once_by", tuple_of(self.once_by))


@dataclass(frozen=True)
class Overwrite:
    """The whole table is replaced by the frame."""


@dataclass(frozen=True)
class OverwritePartitions:
    """The run's partitions of `by` are replaced by the frame, also by no rows; the others stay
    as they are.
    """

    by: str
    """The column that the run's partitions are values of, a partition column of the table."""
    windows: TimeWindows | None = None
    """These partitions where they are hours, days or months, as `by_hour`, `by_day` and
    `by_month` say; left out, the asset names them (`partitions_def=`).
    """


class WindowedTable(Protocol):
    """A table whose partitions may be windows of time."""

    @property
    def name(self) -> str: ...

    @property
    def windows(self) -> TimeWindows | None: ...


def by_hour(
    column: str,
    *,
    since: str | date | None = None,
    time_zone: str | None = None,
    like: WindowedTable | None = None,
) -> OverwritePartitions:
    """Write a table by the hours of a moment, parted by `hours(column)`.

    `since`, `time_zone`, `like` and what is raised are as of `by_day`.
    """
    return _by("hour", column, since, time_zone, like)


def by_day(
    column: str,
    *,
    since: str | date | None = None,
    time_zone: str | None = None,
    like: WindowedTable | None = None,
) -> OverwritePartitions:
    """Write a table by days: a run computes some, and replaces their rows.

    The table's partitioning, and the partitions of its asset, follow from that: `days(column)`
    is put before what `partitioning` says, unless that names the column.

    :param column: a `date`, a `timestamp`, or text such as `2024-01-31`.
    :param since: the first day, such as `2024-01-31`; the last is today.
    :param time_zone: whose days they are; where left out, those of the table's time zone.
    :param like: a table of which the days are the same, in place of `since` and `time_zone`.
    :raises DeclarationError: names the column, what was found and what was expected.
    """
    return _by("day", column, since, time_zone, like)


def by_month(
    column: str,
    *,
    since: str | date | None = None,
    time_zone: str | None = None,
    like: WindowedTable | None = None,
) -> OverwritePartitions:
    """Write a table by months, parted by `months(column)`; the first is that of `since`.

    `time_zone`, `like` and what is raised are as of `by_day`.
    """
    return _by("month", column, since, time_zone, like)


def _by(
    unit: Unit,
    column: str,
    since: str | date | None,
    time_zone: str | None,
    like: WindowedTable | None,
) -> OverwritePartitions:
    what = f"by_{unit}({column!r})"
    if like is not None:
        if since is not None or time_zone is not None:
            raise DeclarationError(
                f"{what} has like={like.name}, and since or time_zone too; expected one of them."
            )
        if like.windows is None:
            raise DeclarationError(
                f"{what} has like={like.name}, which is not written by windows of time; expected"
                " a table that is.",
                next_step="Say since=….",
            )
        since, time_zone = like.windows.since, like.windows.time_zone
    if since is None:
        raise DeclarationError(
            f"{what} has no first {unit}; expected since=…, such as 2024-01-31, or like=…, a"
            " table that has the same."
        )
    return OverwritePartitions(column, TimeWindows.begin(unit, since, time_zone, what))


WithinFile = Literal["first", "last"]


@dataclass(frozen=True)
class Merge:
    """Rows are inserted or updated by their key; a row that would not change is not rewritten.

    A frame may say by a boolean column `_deleted` of which keys the row shall go. One of keys
    and `_deleted` alone deletes, and has nobody read the other columns. Of versions, one that
    deletes counts where it is the newest. One that says nothing of what orders them deletes what
    was there before, and none that is read with it; one without a key deletes the row without a
    key, if there is one. No rule of this table refuses either: let the function call neither a
    deletion. One whose key, or column of `prune_by`, cannot be read breaks the `castable` of that
    column like any other row, and deletes nothing.

    :raises DeclarationError: when no key is named.
    """

    on: Sequence[str]
    """The key: one column, or several. No two rows of a frame may have the same, or lack it both.
    """
    stamp: str | None = None
    """The timestamp that is set on each row that changes, and is not compared."""
    prune_by: Sequence[str] = ()
    """Columns in which rows of one key agree for ever: files that have none of the merged rows'
    values there are not looked into, so that a key is there twice where one changes.
    """
    within_file: WithinFile = "last"
    """Which of the rows of one key in one file counts: that which was delivered last, or first; a
    table that declares `versions` has an order of its own.
    """

    def __post_init__(self) -> None:
        object.__setattr__(self, "on", tuple_of(self.on))
        object.__setattr__(self, "prune_by", tuple_of(self.prune_by))
        if not self.on:
            raise DeclarationError("Merge(on=…) names no column; expected the key of a row.")
        if self.within_file not in get_args(WithinFile):
            raise DeclarationError(
                f"Merge(on={', '.join(self.on)}) has within_file={self.within_file!r}; expected"
                " first or last, the row of a key that counts in a file."
            )


WriteMode = Append | Overwrite | OverwritePartitions | Merge


@dataclass(frozen=True)
class Versions:
    """Rows that agree in `of` are versions of one thing, of which the table holds the newest
    that its rules accept, whatever comes first. Inputs that bring them are read by
    `versions_of`.

    :raises DeclarationError: when either names no column.
    """

    of: Sequence[str]
    """The key of the thing; rows without a value in it are versions of one another."""
    newest: Sequence[str]
    """What orders versions, greatest last. By all of it a refused version counts as corrected by
    a newer one, which takes it out of the quarantine; one in which the first column cannot be
    read counts as corrected by any.
    """
    may_leave_out: bool = field(default=False, repr=False)
    """The function leaves rows out on purpose: `every_row_is_accounted_for` counts them, and
    does not fail for them, as it does in a table that is overwritten by partitions.
    """

    def __post_init__(self) -> None:
        for name in ("of", "newest"):
            columns = tuple_of(getattr(self, name))
            object.__setattr__(self, name, columns)
            if not columns:
                raise DeclarationError(
                    f"Versions({name}=…) names no column; expected at least one."
                )
