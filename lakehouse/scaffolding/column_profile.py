"""What all values of a column come to: counted while files are read, in memory that does not
grow with them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lakehouse.scaffolding.notations import Notations
from lakehouse.scaffolding.values import NUMBERS, DateParts, Value, day_of, value_of

NOTHING = frozenset(
    {"NA", "N/A", "n/a", "#N/A", "n.a.", "NULL", "null", "None", "NaN", "nan", "-", "--", "?"}
    | {"k.A.", "k. A."}
)
"""Words by which tools and people say that there is no value."""
_MOST_DAYS = 40_000
"""Different dates that are kept of a column: a century of days."""


def says_nothing(text: str) -> bool:
    """Whether a delivered text stands where there is no value: spaces, or a word for that."""
    return not text.strip() or text.strip() in NOTHING


@dataclass
class NumberRange:
    """The digits that a column's numbers have on both sides of the mark."""

    whole_digits: int = 0
    """The most."""
    fewest_digits: int = 100
    scale: int = 0
    has_negatives: bool = False
    fits_double: bool = True

    def add(self, value: Value) -> None:
        """Take a number into account."""
        self.whole_digits = max(self.whole_digits, value.whole_digits)
        self.fewest_digits = min(self.fewest_digits, value.whole_digits)
        self.scale = max(self.scale, value.scale)
        self.has_negatives |= value.is_negative
        self.fits_double &= value.fits_double


@dataclass(frozen=True)
class DateForm:
    """How dates are written: which part is first, and the sign between the parts."""

    order: str
    sign: str


@dataclass
class DatesOfForm:
    """The dates of one form: how many values, and the most that stands in each place."""

    rows: int = 0
    most_first: int = 0
    most_second: int = 0

    def add(self, parts: DateParts, rows: int) -> None:
        """Take a date into account that so many rows have."""
        self.rows += rows
        self.most_first = max(self.most_first, parts.first)
        self.most_second = max(self.most_second, parts.second)


@dataclass
class ColumnProfile:
    """The counts of one column over all files that have it."""

    name: str
    file_type: str = ""
    """Its type in files that have types, see `file_types.column_type`."""
    rows: int = 0
    empty_rows: int = 0
    blank_rows: int = 0
    """Those of the empty rows that have a text in it: spaces, or an empty one."""
    nothing: Counter[str] = field(default_factory=Counter)
    """By word such as `NA`, the rows that have it, and no value."""
    forms: Counter[str] = field(default_factory=Counter)
    looks: Counter[str] = field(default_factory=Counter)
    numbers: NumberRange = field(default_factory=NumberRange)
    notations: Notations | None = None
    """What can have written all numbers and dates, except exponents."""
    spaces: set[tuple[str, str]] = field(default_factory=set)
    """What is before and after values; no more than two such pairs."""
    booleans: set[str] = field(default_factory=set)
    """Different words for true and false."""
    dates: dict[DateForm, DatesOfForm] = field(default_factory=dict)
    has_times: bool = False
    file_days: int = 0
    """Different dates of each file, summed over the files."""
    days: set[tuple[DateForm, int, int, int]] = field(default_factory=set)
    """Different dates as they stand; no more than there is memory for."""
    _days_of_file: set[tuple[DateForm, int, int, int]] = field(default_factory=set)

    @property
    def filled_rows(self) -> int:
        """Rows that have something in the column, and no word that says there is nothing."""
        return self.rows - self.empty_rows - self.nothing.total()

    @property
    def has_parts(self) -> bool:
        """Whether its values are nested or bytes: no key, and no person is found by them."""
        return self.file_type.startswith(("struct", "array", "map", "binary"))

    def add(self, counts: Mapping[str | None, int]) -> None:
        """Take values into account, and in how many rows each stands."""
        for text, rows in counts.items():
            self.rows += rows
            if text is None or not text.strip():
                self.empty_rows += rows
                # In CSV, a field without text is a NULL.
                if text or (text is not None and self.file_type):
                    self.blank_rows += rows
            elif text.strip() in NOTHING:
                self.nothing[text.strip()] += rows
            else:
                self._add_value(value_of(text), text, rows)

    def end_of_file(self) -> None:
        """No more values of this file come."""
        self.file_days += len(self._days_of_file)
        self._days_of_file.clear()

    def only(self, forms: Iterable[str]) -> bool:
        """Whether there are values, and each has one of these forms."""
        return bool(self.forms) and not set(self.forms) - set(forms)

    @property
    def is_whole(self) -> bool:
        """Whether all values are whole numbers, or all are written as `17.0`."""
        forms = set(self.forms)
        return forms == {"whole"} or (forms == {"decimal"} and not self.numbers.scale)

    @property
    def has_varying_spaces(self) -> bool:
        """Whether only the spaces around them may distinguish two values."""
        return len(self.spaces) > 1

    def looks_like(self, what: str) -> bool:
        """Whether more than half of the values look like that."""
        return self.looks[what] * 2 > self.filled_rows

    def _add_value(self, value: Value, text: str, rows: int) -> None:
        self.forms[value.form] += rows
        if value.form in NUMBERS:
            self.numbers.add(value)
        elif value.form == "boolean":
            self.booleans.add(text.strip())
        if value.form != "text":
            self._add_notations(value, text)
        if value.looks_like:
            self.looks[value.looks_like] += rows
        if value.date is not None:
            self._add_date(value.date, rows)
        elif value.form == "whole" and (parts := _compact_date(text.strip())) is not None:
            self.looks["compact_date"] += rows
            self._add_date(parts, rows)

    def _add_notations(self, value: Value, text: str) -> None:
        if value.form not in ("exponent", "boolean", "code"):
            known = value.notations if self.notations is None else self.notations
            self.notations = known if known is value.notations else known & value.notations
        if not self.has_varying_spaces:
            before, _, after = text.partition(text.strip())
            self.spaces.add((before, after))

    def _add_date(self, parts: DateParts, rows: int) -> None:
        form = DateForm(parts.order, parts.sign)
        self.dates.setdefault(form, DatesOfForm()).add(parts, rows)
        self.has_times |= parts.has_time
        day = (form, parts.year, parts.first, parts.second)
        for days in (self.days, self._days_of_file):
            if len(days) < _MOST_DAYS:
                days.add(day)


def _compact_date(text: str) -> DateParts | None:
    """Return the day that eight digits such as `20260131` can be; None where they cannot."""
    if len(text) != 8 or not text.isdecimal() or not "1900" <= text[:4] <= "2100":
        return None
    year, month, day = int(text[:4]), int(text[4:6]), int(text[6:])
    if day_of(year, month, day) is None:
        return None
    return DateParts("year", "", year, month, day, has_time=False)
