"""How the values of a column are read: as which type, and what of it is a guess."""

from dataclasses import dataclass

from lakehouse.scaffolding.column_profile import ColumnProfile
from lakehouse.scaffolding.date_forms import (
    DAY_WORDS,
    ReadDates,
    has_milliseconds,
    has_one_notation,
    read_dates,
    shown_forms,
)
from lakehouse.scaffolding.file_forms import UNKNOWN, FileForms
from lakehouse.scaffolding.number_forms import ReadNumbers, read_numbers
from lakehouse.scaffolding.values import NUMBERS
from lakehouse.scaffolding.words import words_of

_BOOLEANS = ({"true", "false"}, {"yes", "no"}, {"t", "f"}, {"y", "n"})


@dataclass(frozen=True)
class Reading:
    """A column's type in silver.

    `note` says how values are written where casts do not read them as they are, `unclear` why
    they stay text though they are none.
    """

    type: str = "string"
    note: str = ""
    unclear: str = ""
    numbers: ReadNumbers | None = None
    dates: ReadDates | None = None
    is_epoch: bool = False
    """Whether timestamps are milliseconds since 1970."""


def reading_of(profile: ColumnProfile, of_files: FileForms = UNKNOWN) -> Reading:
    """Return how a column is read; as text where not all values say otherwise.

    :param of_files: what the columns beside it tell.
    """
    if profile.file_type:
        return _typed(profile, of_files)
    if not profile.filled_rows:
        return Reading(unclear="empty in all rows")
    compact_rows = profile.looks["compact_date"]
    if compact_rows and not DAY_WORDS.isdisjoint(words_of(profile.name)):
        if compact_rows == profile.filled_rows:
            return _dates(profile, of_files)
        if 2 * compact_rows > profile.filled_rows:
            others = f"{profile.filled_rows - compact_rows:,} of {profile.filled_rows:,} rows"
            return Reading(unclear=f"dates such as 20261231, and none in {others}")
    if has_milliseconds(profile):
        return Reading("timestamp", "milliseconds since 1970", is_epoch=True)
    numbers = read_numbers(
        profile, of_files.decimal_mark, points_may_group=of_files.points_may_group
    )
    if numbers is not None:
        return Reading(numbers.type, numbers.note, numbers.unclear, numbers=numbers)
    if profile.only({"date"}):
        return _dates(profile, of_files)
    if profile.forms["date"] + profile.forms["unread_date"] == profile.filled_rows:
        return Reading(unclear="dates with names of months, short years, or AM and PM")
    if profile.forms["unread_number"] and profile.only({*NUMBERS, "unread_number"}):
        return Reading(
            unclear="numbers with spaces or quotes in them, or signs of money or percent"
        )
    if not profile.only({"boolean"}):
        return Reading(unclear=_mixed(profile))
    return _booleans(profile)


def _booleans(profile: ColumnProfile) -> Reading:
    words = {word.lower() for word in profile.booleans}
    if len(words) == 1 and not words & _BOOLEANS[0]:
        return Reading(unclear="one word in all rows, a code or a boolean")
    is_one_spelling = len(words) == len(profile.booleans) and not profile.has_varying_spaces
    if not is_one_spelling or not any(words <= pair for pair in _BOOLEANS):
        return Reading(unclear="several words for true or false, such as yes, Yes and true")
    return Reading("boolean")


def _typed(profile: ColumnProfile, of_files: FileForms) -> Reading:
    """Return how a column is read that has a type in the files: text as dates or as text."""
    if profile.file_type == "string":
        return _dates(profile, of_files) if profile.only({"date"}) else Reading()
    if profile.file_type == "json boolean":
        return Reading("boolean")
    if profile.file_type == "json number":
        numbers = read_numbers(profile, ".", points_may_group=False)
        if numbers is None or numbers.unclear:
            return Reading("double")
        return Reading(numbers.type, numbers=numbers)
    has_days = profile.file_type in ("date", "timestamp") and profile.only({"date"})
    dates = read_dates(profile, of_files.date_orders) if has_days else None
    return Reading(profile.file_type, dates=dates)


def _mixed(profile: ColumnProfile) -> str:
    """Say that a few values keep a column from being read; nothing where most are text."""
    texts, rows = profile.forms["text"], profile.filled_rows
    if 2 * (texts + profile.forms["code"]) >= rows:
        return ""
    if profile.only({*NUMBERS, "code"}):
        return "numbers and codes such as 007, 2.10 or 2E1"
    if not texts:
        return "values of several kinds"
    return f"text in {texts:,} of {rows:,} rows, and numbers or dates in the others"


def _dates(profile: ColumnProfile, of_files: FileForms) -> Reading:
    dates = read_dates(profile, of_files.date_orders)
    if dates is None:
        return Reading(unclear="dates of which the day or the month may come first")
    notes = [f"dates such as {shown_forms(dates.forms)}"] if dates.converted_forms else []
    if not has_one_notation(profile):
        notes.append(
            "notations that become equal, such as 1.2.2026 and 2026-02-01 or 8:00 and 08:00"
        )
    kind = "timestamp" if profile.has_times else "date"
    return Reading(kind, ", ".join(notes), dates=dates)
