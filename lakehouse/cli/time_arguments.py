"""Parses future times: a timestamp with its offset, or a duration from now."""

import re
from datetime import UTC, datetime, timedelta

from lakehouse.errors import UsageError

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DURATION = re.compile(r"(?:\d{1,6}[mhdw])+", re.ASCII)
_EXPECTED = "expected such as 2h, 30m or 3d, or 2026-12-01T08:00+08:00"


def future_timestamp(option: str, text: str, now: datetime) -> datetime:
    """Return a future timestamp in UTC; raises UsageError."""
    timestamp = _after(text, now) if _DURATION.fullmatch(text) else _at(option, text)
    if timestamp is None:
        raise UsageError(f"{option} is {text!r}, beyond the end of the calendar; {_EXPECTED}.")
    if timestamp <= now:
        raise UsageError(f"{option} is {text!r}, which is past; expected a moment to come.")
    return timestamp


def _after(text: str, now: datetime) -> datetime | None:
    timestamp = now
    try:
        for number, unit in re.findall(r"(\d+)([mhdw])", text):
            timestamp += timedelta(**{_UNITS[unit]: int(number)})
        return timestamp
    except OverflowError:
        return None


def _at(option: str, text: str) -> datetime | None:
    try:
        timestamp = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{option} is {text!r}; {_EXPECTED}.") from None
    if timestamp.tzinfo is None:
        raise UsageError(
            f"{option} is {text!r}, without its offset from UTC; {_EXPECTED}, or with a Z at"
            " the end."
        )
    try:
        return timestamp.astimezone(UTC)
    except OverflowError:
        return None
