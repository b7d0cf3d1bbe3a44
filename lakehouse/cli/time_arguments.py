"""A moment to come as a person says it: as a date and time with its offset, or how long from
now.
"""

import re
from datetime import UTC, datetime, timedelta

from lakehouse.errors import UsageError

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DURATION = re.compile(r"(?:\d{1,6}[mhdw])+", re.ASCII)
_EXPECTED = "expected such as 2h, 30m or 3d, or 2026-12-01T08:00+08:00"


def coming_moment(option: str, text: str, now: datetime) -> datetime:
    """Return the moment that a text says, in UTC.

    :param option: what the text was given to, for the error.
    :raises UsageError: when it says none, or one that is past.
    """
    found = _after(text, now) if _DURATION.fullmatch(text) else _at(option, text)
    if found is None:
        raise UsageError(f"{option} is {text!r}, beyond the end of the calendar; {_EXPECTED}.")
    if found <= now:
        raise UsageError(f"{option} is {text!r}, which is past; expected a moment to come.")
    return found


def _after(text: str, now: datetime) -> datetime | None:
    parts = re.findall(r"(\d+)([mhdw])", text)
    try:
        return now + sum(
            (timedelta(**{_UNITS[unit]: int(number)}) for number, unit in parts), timedelta()
        )
    except OverflowError:
        return None


def _at(option: str, text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{option} is {text!r}; {_EXPECTED}.") from None
    if found.tzinfo is None:
        raise UsageError(
            f"{option} is {text!r}, without its offset from UTC; {_EXPECTED}, or with a Z at"
            " the end."
        )
    try:
        return found.astimezone(UTC)
    except OverflowError:
        return None
