"""Write modes: how a write changes existing rows, and which version of a row is current."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Literal, Protocol, get_args

from lakehouse.errors import DeclarationError
from lakehouse.tables.column import tuple_of
from lakehouse.tables.partitioning import TimeWindows, Unit


@dataclass(frozen=True)
class Append:
    """Add rows. Rows whose `once_by` values are already in the table are skipped, so a repeated
    run adds nothing.
    """

    once_by: Sequence[str] | None = None
    """The key columns; default: those of a delivery (`_source_file`, `_source_sha256`), if the
    table has them. `()` adds rows with every run and is for tables without inputs. A run
    fails if a row has NULL in a key column, unless a rule rejects it.
    """

    def __post_init__(self) -> None:
        if self.once_by is not None:
            object.__setattr__(self, "once_by", tuple_of(self.once_by))


@dataclass(frozen=True)
class Overwrite:
    """Replace the entire table with the DataFrame."""


@dataclass(frozen=True)
class OverwritePartitions:
    """Replace the run's partitions of `by` with the DataFrame, even if it is empty; other
    partitions do not change.
    """

    by: str
    """The column whose values are the run's partitions; a partition column of the table."""
    windows: TimeWindows | None = None
    """The partitions if they are hours, days or months, from `by_hour`, `by_day` and
    `by_month`; otherwise the asset defines them (`partitions_def=`).
    """


class WindowedTable(Protocol):
    """A table whose partitions may be time windows."""

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
    """Write a table by the hours of a timestamp column, partitioned by `hours(column)`.

    `since`, `time_zone`, `like` and the errors are those of `by_day`.
    """
    return _by("hour", column, since, time_zone, like)


def by_day(
    column: str,
    *,
    since: str | date | None = None,
    time_zone: str | None = None,
    like: WindowedTable | None = None,
) -> OverwritePartitions:
    """Write a table by days: a run computes some days and replaces their rows.

    This also defines the table's partitioning and the partitions of its asset: `days(column)`
    precedes the fields in `partitioning`, unless these include the column.

    :param column: a `date`, a `timestamp`, or text such as `2024-01-31`.
    :param since: the first day, such as `2024-01-31`; the last is today.
    :param time_zone: the zone of the days; default: the table's time zone.
    :param like: a table with the same days, instead of `since` and `time_zone`.
    :raises DeclarationError: states the column, the actual and the expected value.
    """
    return _by("day", column, since, time_zone, like)


def by_month(
    column: str,
    *,
    since: str | date | None = None,
    time_zone: str | None = None,
    like: WindowedTable | None = None,
) -> OverwritePartitions:
    """Write a table by months, partitioned by `months(column)`; the first is that of `since`.

    `time_zone`, `like` and the errors are those of `by_day`.
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
    if (since is None) == (like is None) or (like is not None and like.windows is None):
        raise DeclarationError(
            f"{what} has since={since!r} and like={like.name if like else None}; expected a"
            f" first {unit} such as 2024-01-31, or like=…, a table written by windows of time."
        )
    if like is not None and like.windows is not None:
        since, time_zone = like.windows.since, time_zone or like.windows.time_zone
    assert since is not None
    return OverwritePartitions(column, TimeWindows.begin(unit, since, time_zone, what))


WithinFile = Literal["first", "last"]


@dataclass(frozen=True)
class Merge:
    """Insert or update rows by key; unchanged rows are not rewritten.

    A DataFrame may have a boolean column `_deleted` that marks keys to delete. A DataFrame with
    only the key and `_deleted` deletes without reading other columns. Among versions, a
    deletion takes effect if it is the newest. A deletion without version columns deletes
    existing rows, but not rows of the same read; one with a NULL key deletes the row with a
    NULL key. Rules do not reject such deletions. A deletion whose key or `prune_by` column
    cannot be cast breaks that column's `castable` rule and deletes nothing, unless the
    rule tolerates it.

    :raises DeclarationError: if the key is empty.
    """

    on: Sequence[str]
    """The key columns. No two rows of a DataFrame may have the same key or both lack it."""
    stamp: str | None = None
    """The timestamp column that is set on each changed row and not compared."""
    prune_by: Sequence[str] = ()
    """Columns that never change for a key. Files without the incoming rows' values are not
    read; if a value changes, the key is duplicated.
    """
    within_file: WithinFile = "last"
    """Which row of a key in one file is used: the last or the first delivered. A table with
    `versions` has its own order.
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
    """Rows with equal `of` columns are versions of one entity. The table contains the newest
    version that its rules accept, regardless of arrival order. Read such inputs with
    `versions_of`.

    :raises DeclarationError: if either has no columns.
    """

    of: Sequence[str]
    """The key of the entity; rows with NULL keys are versions of each other."""
    newest: Sequence[str]
    """The columns that order versions, greatest last. A rejected version is corrected by a
    newer one and leaves the quarantine. If its first column cannot be cast, any version
    corrects it.
    """
    may_leave_out: bool = field(default=False, repr=False)
    """Whether the function leaves out rows on purpose. Then `every_row_is_accounted_for` counts
    them without failing, as it does for a table overwritten by partitions.
    """

    def __post_init__(self) -> None:
        for name in ("of", "newest"):
            columns = tuple_of(getattr(self, name))
            object.__setattr__(self, name, columns)
            if not columns:
                raise DeclarationError(
                    f"Versions({name}=…) names no column; expected at least one."
                )
