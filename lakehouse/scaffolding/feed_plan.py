"""What is declared of files that were looked at: the columns, the key, the days and whom they
tell of; decided from counts, and each guess said.
"""

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

from lakehouse.scaffolding.column_profile import ColumnProfile
from lakehouse.scaffolding.column_reading import Reading, reading_of
from lakehouse.scaffolding.date_forms import VERSION_WORDS
from lakehouse.scaffolding.file_forms import FileForms, file_forms
from lakehouse.scaffolding.file_types import bronze_type
from lakehouse.scaffolding.inspect_files import Inspection
from lakehouse.scaffolding.key_choice import ChosenKey, choose_key
from lakehouse.scaffolding.people import (
    AmongPeople,
    has_full_names,
    stands_for_person,
    why_personal,
)
from lakehouse.scaffolding.uniqueness import is_key_name
from lakehouse.scaffolding.words import words_of
from lakehouse.tables.feed import CSV_FORMATS, is_own_name
from lakehouse.tables.layout_validation import can_be_read

_PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_TIME_SUFFIX = re.compile(
    r"_?(?:date_?time|timestamp|date|time|datum|day|at|ts|on)$", re.IGNORECASE
)
_FEW_ROWS_PER_DAY = 3
"""Rows of a day below which days are no parts worth having."""
_LONGEST_SPAN = timedelta(days=100 * 366)


@dataclass(frozen=True)
class PlannedColumn:
    """A column as it is declared.

    `name` is that of silver, `delivered` that of the files. Bronze has that of the files too,
    but for one that cannot be read as that of one column, such as `Pos.`, and one of a column
    that every bronze table has, such as `_source_file`.
    """

    name: str
    delivered: str
    reading: Reading
    is_optional: bool
    is_filled: bool
    """Whether each row that was looked at has something in it."""
    why_personal: str = ""
    file_type: str = ""
    """Its type in files that have types."""
    blank_rows: int = 0
    """Rows that have an empty text in it, or spaces and nothing else."""
    nothing: Mapping[str, int] = field(default_factory=dict)
    """By word such as `NA` that says there is no value, the rows that have it."""

    @property
    def has_blanks(self) -> bool:
        """Whether spaces or words stand where its type has no value."""
        is_text = self.bronze_type == "string"
        return is_text and self.type != "string" and bool(self.blank_rows or self.nothing)

    @property
    def type(self) -> str:
        """Its type in silver."""
        return self.reading.type

    @property
    def bronze_type(self) -> str:
        """Its type in bronze."""
        return bronze_type(self.file_type)

    @property
    def in_bronze(self) -> str:
        """Its name in bronze."""
        return self.delivered if _is_kept(self.delivered) else self.name

    @property
    def is_renamed(self) -> bool:
        """Whether silver has another name for it than bronze."""
        return self.name != self.in_bronze


@dataclass(frozen=True)
class PlannedDays:
    """The days that tables are partitioned by: bronze has them in a column `name` of its own,
    silver in `silver_name`.
    """

    column: PlannedColumn
    name: str
    since: date
    last: date
    with_rows: int

    @property
    def silver_name(self) -> str:
        """The column that silver is partitioned by."""
        return self.column.name if self.column.type == "date" else self.name

    @property
    def without_rows(self) -> int:
        """Days between the first and the last of which no row is."""
        return (self.last - self.since).days + 1 - self.with_rows


@dataclass(frozen=True)
class FeedPlan:
    """All that is declared of a feed; `key` is empty where each delivered line is a row."""

    name: str
    time_zone: str
    rows: int
    files: int
    columns: tuple[PlannedColumn, ...]
    delimiter: str = ","
    formats: tuple[str, ...] = ()
    """Those of the files, where they are not those that feeds take by default."""
    key: tuple[str, ...] = ()
    chosen_key: ChosenKey = field(default_factory=ChosenKey)
    """How that came to be, by the names of columns in the files."""
    repeated_rows: tuple[int, int] = (0, 0)
    """How many rows are the same as one before, and how many were compared."""
    like_names: tuple[str, ...] = ()
    """Columns that are called names and have such as people have, whoever they are of."""
    subject: PlannedColumn | None = None
    moment: PlannedColumn | None = None
    days: PlannedDays | None = None

    @property
    def is_typed(self) -> bool:
        """Whether the files have types."""
        return any(column.file_type for column in self.columns)

    @property
    def files_text(self) -> str:
        """How many files were looked at."""
        return "1 file" if self.files == 1 else f"{self.files:,} files"

    @property
    def bronze(self) -> str:
        """Name of the table of delivered rows."""
        return f"bronze.{self.name}_raw"

    @property
    def silver(self) -> str:
        """Name of the typed table."""
        return f"silver.{self.name}"

    @property
    def personal_columns(self) -> tuple[PlannedColumn, ...]:
        """What may identify a person directly."""
        return tuple(column for column in self.columns if column.why_personal)

    @property
    def unclear_columns(self) -> tuple[PlannedColumn, ...]:
        """Columns that stay text, since their values do not tell what they are."""
        return tuple(column for column in self.columns if column.reading.unclear)


def plan_feed(found: Inspection, name: str, time_zone: str, today: date) -> FeedPlan:
    """Decide what is declared of files that were looked at.

    :param today: days after it are none to part rows by.
    """
    names = _silver_names(found.columns)
    personal = _personal(found)
    of_files = file_forms(found.columns.values(), found.delimiter)
    columns = tuple(
        _planned(found, profile, names[delivered], personal.get(delivered, ""), of_files)
        for delivered, profile in found.columns.items()
    )
    moment = next((column for column in columns if _is_moment(column)), None)
    key = choose_key(found, moment.delivered if moment else None)
    return FeedPlan(
        name,
        time_zone,
        found.rows,
        len(found.files),
        columns,
        delimiter=found.delimiter,
        formats=_formats(found),
        key=tuple(names[part] for part in key.columns),
        chosen_key=key,
        repeated_rows=found.repeated_rows,
        like_names=tuple(
            column.delivered
            for column in columns
            if not column.why_personal and has_full_names(found.columns[column.delivered])
        ),
        subject=_subject(found, columns),
        moment=moment,
        days=_days(found, columns, today),
    )


def _formats(found: Inspection) -> tuple[str, ...]:
    formats = {file.file_format for file in found.files}
    return () if formats <= set(CSV_FORMATS) else tuple(sorted(formats))


def _silver_names(columns: Collection[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    taken: set[str] = set()
    in_files = {delivered.lower() for delivered in columns}
    for number, delivered in enumerate(columns, start=1):
        plain = delivered if _PLAIN_NAME.fullmatch(delivered) else _plain(delivered)
        # Bronze has that name too where it cannot have the delivered one.
        is_taken_there = not _is_kept(delivered) and plain.lower() in in_files
        if not plain or plain.lower() in taken or is_taken_there:
            plain = f"column_{number}"
        taken.add(plain.lower())
        names[delivered] = plain
    return names


def _is_kept(name: str) -> bool:
    """Whether bronze can have the name that files have."""
    return can_be_read(name) and not is_own_name(name)


def _plain(name: str) -> str:
    """Return a name in letters, digits and underscores, from a letter on: what begins with a
    digit goes to its end, as `votes_2024` of `2024 votes`. Empty where it has no letter.
    """
    ascii_only = (
        unicodedata.normalize("NFKD", name.casefold()).encode("ascii", "ignore").decode()
    )
    words = re.findall(r"[a-z0-9]+", ascii_only)
    at = next((at for at, word in enumerate(words) if word[0].isalpha()), len(words))
    return "_".join([*words[at:], *words[:at]]) if at < len(words) else ""


def _personal(found: Inspection) -> dict[str, str]:
    """Return why columns may identify people, by their name; of those that do."""
    alone = {name: why_personal(profile) for name, profile in found.columns.items()}
    has_keys = any(
        is_key_name(name) and stands_for_person(profile)
        for name, profile in found.columns.items()
    )
    among: AmongPeople = "their keys" if has_keys else ""
    if any(alone.values()):
        among = "their data"
    reasons = {
        name: alone[name] or why_personal(profile, among_people=among)
        for name, profile in found.columns.items()
    }
    return {name: reason for name, reason in reasons.items() if reason}


def _planned(
    found: Inspection, profile: ColumnProfile, name: str, personal: str, of_files: FileForms
) -> PlannedColumn:
    reading = reading_of(profile, of_files)
    is_optional = not found.is_in_all_files(profile.name)
    return PlannedColumn(
        name,
        profile.name,
        # A number that identifies a person, as of a phone, is none to reckon with.
        Reading() if personal and reading.numbers else reading,
        file_type=profile.file_type,
        is_optional=is_optional,
        is_filled=not is_optional and 0 < profile.rows == profile.filled_rows,
        why_personal=personal,
        blank_rows=profile.blank_rows,
        nothing=dict(sorted(profile.nothing.items())),
    )


def _subject(found: Inspection, columns: Sequence[PlannedColumn]) -> PlannedColumn | None:
    """Return the column that stands for a person: one named so, or else the first address."""
    named = (column for column in columns if stands_for_person(found.columns[column.delivered]))
    addresses = (
        column for column in columns if found.columns[column.delivered].looks_like("email")
    )
    return next(named, None) or next(addresses, None)


def _is_moment(column: PlannedColumn) -> bool:
    """Whether a column says when the source wrote the row."""
    is_named = not VERSION_WORDS.isdisjoint(words_of(column.delivered))
    return column.type == "timestamp" and column.is_filled and is_named


def _days(
    found: Inspection, columns: Sequence[PlannedColumn], today: date
) -> PlannedDays | None:
    """Return the days by which rows come: those of the first column that has many rows a day,
    or of which each file has days of its own.
    """
    for column in columns:
        profile = found.columns[column.delivered]
        dates = column.reading.dates
        if dates is None or not dates.days or not column.is_filled or column.why_personal:
            continue
        count = len(dates.days)
        come_by_file = len(found.files) > 1 and profile.file_days <= 2 * count
        has_many_rows = profile.rows >= _FEW_ROWS_PER_DAY * count
        is_past = dates.days[-1] <= today + timedelta(days=1)
        is_short = dates.days[-1] - dates.days[0] <= _LONGEST_SPAN
        if is_past and is_short and (come_by_file or has_many_rows):
            name = _day_name(column.name, [other.name for other in columns])
            return PlannedDays(column, name, dates.days[0], dates.days[-1], count)
    return None


def _day_name(name: str, taken: Sequence[str]) -> str:
    base = _TIME_SUFFIX.sub("", name).rstrip("_").lower()
    day = f"{base}_day" if base else "day"
    return "_event_date" if day in {other.lower() for other in taken} else day
