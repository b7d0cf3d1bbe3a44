"""The declaration of a feed, guessed from its files."""

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.scaffolding.column_readings import Reading, reading_of
from lakehouse.scaffolding.key_columns import KeyGuess, guess_key
from lakehouse.scaffolding.personal_columns import is_person_key, personal_columns
from lakehouse.scaffolding.sampled_column import ColumnProfile, profile_column, word_set
from lakehouse.scaffolding.samples import FILE_NUMBER, Samples
from lakehouse.tables.feed import is_own_name
from lakehouse.tables.table_validation import can_be_read

_PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_TIME_SUFFIX = re.compile(
    r"_?(?:date_?time|timestamp|date|time|datum|day|at|ts|on)$", re.IGNORECASE
)
_CHANGE_WORDS = frozenset({"updated", "modified", "changed", "written"})
_VERSION_WORDS = _CHANGE_WORDS | {"created"}
_YEARS = word_set("year jahr annee ano anno jaar rok season saison")
_MIN_ROWS_PER_DAY = 3
"""With fewer rows per day, partitions by day are too small."""
_MAX_SPAN = timedelta(days=100 * 366)


@dataclass(frozen=True)
class PlannedColumn:
    """A column as it is declared.

    `name` is its name in silver, `delivered` its name in the files. Bronze has the delivered
    name unless it cannot be a column name, such as `Pos.`, or is reserved, such as
    `_source_file`.
    """

    name: str
    profile: ColumnProfile
    reading: Reading
    is_optional: bool
    """Whether a file has no such column."""
    why_personal: str = ""

    @property
    def delivered(self) -> str:
        return self.profile.name

    @property
    def type(self) -> str:
        return self.reading.type

    @property
    def bronze_type(self) -> str:
        return self.profile.file_type or "string"

    @property
    def in_bronze(self) -> str:
        return self.delivered if _is_possible(self.delivered) else self.name

    @property
    def is_text_as_named(self) -> bool:
        """Whether the feed declares its name only."""
        is_plain = not self.is_optional and not self.why_personal
        return is_plain and self.bronze_type == "string" and self.in_bronze == self.delivered

    @property
    def is_renamed(self) -> bool:
        """Whether silver has another name for it than bronze."""
        return self.name != self.in_bronze

    @property
    def is_filled(self) -> bool:
        """Whether each row has a value."""
        return not self.is_optional and self.profile.is_filled

    @property
    def has_blanks(self) -> bool:
        """Whether spaces or words mean missing values of a type other than text."""
        is_converted = self.bronze_type == "string" != self.type
        return is_converted and (self.profile.has_blanks or bool(self.profile.nothing))


@dataclass(frozen=True)
class PlannedDays:
    """The days by which tables are partitioned: bronze has them in a column `name` of its own."""

    column: PlannedColumn
    name: str
    first: date
    last: date
    with_rows: int

    @property
    def silver_name(self) -> str:
        """The column by which silver is partitioned."""
        return self.column.name if self.column.type == "date" else self.name

    @property
    def since(self) -> date:
        """The first valid day: an offset can move a timestamp to the day before."""
        first = self.first - timedelta(days=self.column.reading.has_offsets)
        return first.replace(day=1)


@dataclass(frozen=True)
class FeedPlan:
    """The declaration of a feed; `key` is empty if each delivered line is a row."""

    name: str
    time_zone: str
    samples: Samples
    columns: tuple[PlannedColumn, ...]
    key: tuple[str, ...] = ()
    key_guess: KeyGuess = field(default_factory=KeyGuess)
    """By the names of columns in the files."""
    subject: PlannedColumn | None = None
    version: PlannedColumn | None = None
    """The time at which the source wrote the row."""
    days: PlannedDays | None = None

    @property
    def rows(self) -> int:
        return int(self.samples.texts.num_rows)

    @property
    def source(self) -> str:
        """What the guesses are based on."""
        files = len(self.samples.files)
        return f"{self.rows:,} rows of {files:,} {'file' if files == 1 else 'files'}"

    @property
    def bronze(self) -> str:
        return f"bronze.{self.name}_raw"

    @property
    def silver(self) -> str:
        return f"silver.{self.name}"

    @property
    def personal_columns(self) -> tuple[PlannedColumn, ...]:
        """Columns that can identify a person directly."""
        return tuple(column for column in self.columns if column.why_personal)


def plan_feed(samples: Samples, name: str, time_zone: str, today: date) -> FeedPlan:
    """Guess the declaration of a feed.

    :param today: rows are not partitioned by later days.
    """
    profiles = {
        name: profile_column(name, samples.types[name], samples.texts[name])
        for name in samples.texts.column_names[:-1]
    }
    columns = _columns(samples, profiles)
    version = next((column for column in columns if _is_version(column)), None)
    has_changes = version and not _CHANGE_WORDS.isdisjoint(version.profile.words)
    key = guess_key(
        samples.texts,
        [column.delivered for column in columns if _can_be_key(column)],
        [column.delivered for column in columns if _has_row_day(column)],
        version.delivered if version and has_changes else None,
    )
    names = {column.delivered: column.name for column in columns}
    # In a partitioned table, other versions of a row are found by its key as delivered.
    is_converted = any(
        column.reading.function for column in columns if column.delivered in key.columns
    )
    return FeedPlan(
        name,
        time_zone,
        samples,
        columns,
        key=tuple(names[part] for part in key.columns),
        key_guess=key,
        subject=_subject(columns),
        version=version,
        days=None if is_converted else _days(samples, columns, today),
    )


def _columns(
    samples: Samples, profiles: Mapping[str, ColumnProfile]
) -> tuple[PlannedColumn, ...]:
    names = _silver_names(profiles)
    personal = personal_columns(profiles)
    columns = []
    for delivered, profile in profiles.items():
        reading = reading_of(profile)
        if delivered in personal and not reading.days and not profile.file_type:
            # A number that identifies a person, such as a phone, is no quantity.
            reading = Reading()
        is_optional = not samples.is_in_all_files(delivered)
        why = personal.get(delivered, "")
        columns.append(PlannedColumn(names[delivered], profile, reading, is_optional, why))
    return tuple(columns)


def _silver_names(columns: Collection[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    taken: set[str] = set()
    in_files = {delivered.lower() for delivered in columns}
    for number, delivered in enumerate(columns, start=1):
        plain = delivered if _PLAIN_NAME.fullmatch(delivered) else _plain(delivered)
        # Bronze has that name too if it cannot have the delivered one.
        is_taken = not _is_possible(delivered) and plain.lower() in in_files
        if not plain or plain.lower() in taken or is_taken:
            plain = f"column_{number}"
        taken.add(plain.lower())
        names[delivered] = plain
    return names


def _is_possible(name: str) -> bool:
    """Whether bronze can have the name that files have."""
    return can_be_read(name) and not is_own_name(name)


def _plain(name: str) -> str:
    """Return a name of letters, digits and underscores: `votes_2024` for `2024 votes`."""
    folded = unicodedata.normalize("NFKD", name.casefold())
    words = re.findall(r"[a-z0-9]+", folded.encode("ascii", "ignore").decode())
    at = next((at for at, word in enumerate(words) if word[0].isalpha()), len(words))
    return "_".join([*words[at:], *words[:at]]) if at < len(words) else ""


def _can_be_key(column: PlannedColumn) -> bool:
    """Whether the values can be those of keys; decimals are measures or amounts."""
    profile, reading = column.profile, column.reading
    is_fraction = profile.any_match("[+-]?[0-9]*[.,][0-9]*[1-9][0-9]*")
    has_gaps = profile.has_blanks or (profile.nothing and reading.type != "string")
    is_other = column.why_personal or profile.has_parts or reading.days
    return not (is_fraction or has_gaps or is_other)


def _has_row_day(column: PlannedColumn) -> bool:
    """Whether each row has its day or year in a column, other than a day of birth."""
    has_days = bool(column.reading.days) and column.reading.has_one_notation
    is_year = not _YEARS.isdisjoint(column.profile.words[-1:])
    return column.is_filled and (has_days or is_year) and not column.why_personal


def _is_version(column: PlannedColumn) -> bool:
    is_named = not _VERSION_WORDS.isdisjoint(column.profile.words)
    return column.type == "timestamp" and column.is_filled and is_named


def _subject(columns: Sequence[PlannedColumn]) -> PlannedColumn | None:
    """Return the column that identifies a person, or else the first e-mail address."""
    named = (column for column in columns if is_person_key(column.profile))
    addresses = (column for column in columns if column.profile.is_mostly("email"))
    return next(named, None) or next(addresses, None)


def _days(
    samples: Samples, columns: Sequence[PlannedColumn], today: date
) -> PlannedDays | None:
    """Return the days of the first date column that has several rows per day or file."""
    for column in columns:
        days = sorted(set(column.reading.days.values()))
        if not days or not column.is_filled or column.why_personal:
            continue
        is_usual = days[-1] <= today and days[-1] - days[0] <= _MAX_SPAN
        has_many_rows = column.profile.rows >= _MIN_ROWS_PER_DAY * len(days)
        has_files = len(samples.files) > 1
        is_by_file = has_files and _file_days(samples, column.delivered) <= 2 * len(days)
        if is_usual and (has_many_rows or is_by_file):
            name = _day_name(column.name, [other.name for other in columns])
            return PlannedDays(column, name, days[0], days[-1], len(days))
    return None


def _file_days(samples: Samples, name: str) -> int:
    """Return the number of different days of each file, summed over the files."""
    days = pc.replace_substring_regex(samples.texts[name], r"\s*([^\sT]+).*", r"\1")
    pairs = pa.table([days, samples.texts[FILE_NUMBER]], ["day", "file"])
    return int(pairs.group_by(["day", "file"]).aggregate([]).num_rows)


def _day_name(name: str, taken: Sequence[str]) -> str:
    base = _TIME_SUFFIX.sub("", name).rstrip("_").lower()
    day = f"{base}_day" if base else "day"
    return "_event_date" if day in {other.lower() for other in taken} else day
