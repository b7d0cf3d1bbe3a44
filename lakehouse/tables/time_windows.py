"""Partitions that are hours, days or months in a time zone."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lakehouse.errors import DeclarationError

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
        """Return the partition field of a column; a text column is partitioned by its values,
        which are the partition keys.
        """
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
    expected = "expected a day such as 2024-01-31, or a time of it such as 2024-01-31T08:00."
    if isinstance(since, str):
        try:
            since = datetime.fromisoformat(since)
        except ValueError:
            raise DeclarationError(f"{what}: since is {since!r}; {expected}") from None
    if not isinstance(since, date):
        raise DeclarationError(f"{what}: since is {since!r}; {expected}")
    if not isinstance(since, datetime):
        return datetime(since.year, since.month, since.day)
    if since.tzinfo is not None:
        raise DeclarationError(
            f"{what}: since is {since.isoformat()}, with an offset; expected a wall time.",
            next_step="Leave the offset out, and set time_zone=….",
        )
    return since
