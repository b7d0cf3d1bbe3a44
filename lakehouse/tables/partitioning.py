"""Partition transforms, sort orders, and partitions that are time windows in a time zone."""

import re
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lakehouse.errors import DeclarationError
from lakehouse.tables.quoting import identifier

Unit = Literal["hour", "day", "month"]
_FLOOR = {
    "hour": {"minute": 0},
    "day": {"hour": 0, "minute": 0},
    "month": {"day": 1, "hour": 0, "minute": 0},
}


@dataclass(frozen=True)
class TimeWindows:
    """Each hour, day or month from `since` to the current one, in a time zone; default: that of
    the table.

    `since` is a wall time in that zone.
    """

    unit: Unit
    since: datetime
    time_zone: str | None = None

    @classmethod
    def begin(
        cls, unit: Unit, since: str | date, time_zone: str | None, what: str
    ) -> "TimeWindows":
        """Return the windows starting with the one that contains `since`; `what` is for errors."""
        begin = _wall_time(since, what)
        if time_zone is not None:
            check_time_zone(time_zone, what)
        floor = begin.replace(second=0, microsecond=0, **_FLOOR[unit])  # type: ignore[arg-type]
        return cls(unit, floor, time_zone)

    def partitioning(self, column: str, column_type: str) -> str:
        """Return the partition field of a column; text is partitioned by its values."""
        return column if column_type == "string" else f"{self.unit}s({column})"


def check_time_zone(name: str, what: str) -> None:
    """Check that a time zone exists; `what` is the declaring object, for errors."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise DeclarationError(
            f"{what}: time_zone is {name!r}; expected a name such as UTC or Asia/Kuala_Lumpur."
        ) from error


def _wall_time(since: str | date, what: str) -> datetime:
    try:
        begin = datetime.fromisoformat(str(since))
    except ValueError:
        begin = None
    if begin is None or begin.tzinfo is not None:
        raise DeclarationError(
            f"{what}: since is {since!r}; expected a day such as 2024-01-31, or a wall time"
            " without an offset such as 2024-01-31T08:00."
        )
    return begin


Transform = Literal["identity", "years", "months", "days", "hours", "bucket", "truncate"]
_PERIODS: dict[str, Transform] = {
    "year": "years",
    "month": "months",
    "day": "days",
    "hour": "hours",
}
_ICEBERG: dict[str, Transform] = {
    **_PERIODS,
    "identity": "identity",
    "bucket": "bucket",
    "truncate": "truncate",
}
_IN_METADATA = re.compile(r"^(?P<name>[a-z]+)(?:\[(?P<width>\d+)])?$")
_CALL = re.compile(r"^(\w+)\s*\(\s*([^,()]+?)\s*(?:,\s*([^,()]+?)\s*)?\)$")
_SORT = re.compile(
    r"^(?P<term>.+?)(?:\s+(?P<direction>asc|desc))?(?:\s+nulls\s+(?P<nulls>first|last))?$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class PartitionField:
    """A transform of a column; `width` is for bucket and truncate."""

    transform: Transform
    column: str
    width: int | None = None

    @classmethod
    def parse(cls, text: str) -> "PartitionField":
        """Parse `region`, `days(ts)`, `bucket(16, id)` or `truncate(zip, 4)`."""
        call = _CALL.match(text.strip())
        if call is None:
            if re.fullmatch(r"[^\s(),]+", text.strip()):
                return cls("identity", text.strip())
            raise _unknown(text)
        name, first, second = call[1].lower(), call[2], call[3]
        name = _PERIODS.get(name, name)
        if second is None and name in ("identity", *_PERIODS.values()):
            return cls(cast(Transform, name), first)
        if second is None or name not in ("bucket", "truncate"):
            raise _unknown(text)
        width, column = (first, second) if first.isdigit() else (second, first)
        if not width.isdigit() or int(width) < 1 or column.isdigit():
            raise _unknown(text)
        return cls(cast(Transform, name), column, int(width))

    @classmethod
    def of_metadata(cls, transform: str, column: str) -> "PartitionField | None":
        """Parse Iceberg's notation, such as `bucket[16]`; None for other transforms."""
        match = _IN_METADATA.match(transform)
        if match is None or match["name"] not in _ICEBERG:
            return None
        return cls(
            _ICEBERG[match["name"]], column, int(match["width"]) if match["width"] else None
        )

    @property
    def in_metadata(self) -> str:
        """The transform in Iceberg's metadata notation, such as `day` or `bucket[16]`."""
        name = next(name for name, known in _ICEBERG.items() if known == self.transform)
        return f"{name}[{self.width}]" if self.width else name

    @property
    def sql(self) -> str:
        return self._call(identifier(self.column))

    def __str__(self) -> str:
        return self._call(self.column)

    def _call(self, column: str) -> str:
        if self.transform == "identity":
            return column
        width = f"{self.width}, " if self.width else ""
        return f"{self.transform}({width}{column})"


@dataclass(frozen=True)
class SortField:
    """A column or a transform, its direction and the position of NULLs."""

    field: PartitionField
    descending: bool
    nulls_first: bool

    @classmethod
    def parse(cls, text: str) -> "SortField":
        """Parse `ts`, `ts desc`, `bucket(4, id) asc nulls last`."""
        match = _SORT.match(text.strip())
        if match is None:
            raise _unknown(text)
        descending = (match["direction"] or "asc").lower() == "desc"
        nulls_first = match["nulls"].lower() == "first" if match["nulls"] else not descending
        return cls(PartitionField.parse(match["term"]), descending, nulls_first)

    @property
    def sql(self) -> str:
        direction = "DESC" if self.descending else "ASC"
        return f"{self.field.sql} {direction} NULLS {'FIRST' if self.nulls_first else 'LAST'}"

    def __str__(self) -> str:
        direction = "desc" if self.descending else "asc"
        return f"{self.field} {direction} nulls {'first' if self.nulls_first else 'last'}"


def _unknown(text: str) -> DeclarationError:
    return DeclarationError(
        f"{text!r} is not a partition transform; expected a column, years(c), months(c),"
        " days(c), hours(c), bucket(n, c) or truncate(w, c)."
    )
