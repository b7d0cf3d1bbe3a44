"""A moment to come as a person writes it: as a date and time with its offset, or how long from
now.
"""

import re
from datetime import UTC, datetime, timedelta

from lakehouse.errors import UsageError

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DURATION = re.compile(r"(?:\d{1,6}[mhdw])+", re.ASCII)
_EXPECTED = "expected such as 2h, 30m or 3d, or 2026-12-01T08:00+08:00"


def coming_moment(option: str, text: str, now: datetime) -> datetime:
    """Return the moment of a text, in UTC.

    :param option: what the text was given to, for the error.
    :raises UsageError: when it is none, or one that is past.
    """
    moment = _after(text, now) if _DURATION.fullmatch(text) else _at(option, text)
    if moment is None:
        raise UsageError(f"{option} is {text!r}, beyond the end of the calendar; {_EXPECTED}.")
    if moment <= now:
        raise UsageError(f"{option} is {text!r}, which is past; expected a moment to come.")
    return moment


def _after(text: str, now: datetime) -> datetime | None:
    moment = now
    try:
        for number, unit in re.findall(r"(\d+)([mhdw])", text):
            moment += timedelta(**{_UNITS[unit]: int(number)})
        return moment
    except OverflowError:
        return None


def _at(option: str, text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{option} is {text!r}; {_EXPECTED}.") from None
    if moment.tzinfo is None:
        raise UsageError(
            f"{option} is {text!r}, without its offset from UTC; {_EXPECTED}, or with a Z at"
            " the end."
        )
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return None
