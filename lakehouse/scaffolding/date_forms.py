"""In which order a column writes its dates, as far as its values tell."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from lakehouse.scaffolding.column_profile import ColumnProfile, DateForm, DatesOfForm
from lakehouse.scaffolding.uniqueness import is_key_name
from lakehouse.scaffolding.values import day_of
from lakehouse.scaffolding.words import words_of

DAY_WORDS = frozenset(
    {"date", "day", "datum", "tag", "dt", "data", "fecha", "jour", "dia"}
    | {"dob", "birthdate", "birthday", "birth", "born", "geburtsdatum", "geburtstag"}
    | {"naissance", "nacimiento", "nascimento", "nascita", "geboortedatum", "urodzenia"}
)
VERSION_WORDS = frozenset({"updated", "modified", "changed", "created", "written"})
_TIME_WORDS = DAY_WORDS | VERSION_WORDS | {"time", "timestamp", "ts", "at", "datetime", "epoch"}
_LAST_MONTH = 12
_DAY_FIRST_SIGN = "."
"""Where points stand between the numbers of a date, the day comes first in every country."""
_PARTS = {"Y": "Y M D", "D": "D M Y", "M": "M D Y"}
_ISO = "Y-M-D"


@dataclass(frozen=True)
class ReadDates:
    """How a column's dates are read: the forms that `iso_date` takes, and the days that there
    are.
    """

    forms: tuple[str, ...]
    days: tuple[date, ...]

    @property
    def converted_forms(self) -> tuple[str, ...]:
        """The forms that casts do not read as they are."""
        return tuple(form for form in self.forms if form != _ISO)


def read_dates(
    column: ColumnProfile, orders_by_sign: Mapping[str, str] | None = None
) -> ReadDates | None:
    """Return how a column's dates are read; None where nothing tells which of two numbers is
    the month.

    :param orders_by_sign: what other columns tell, see `FileForms.date_orders`.
    """
    known = {_DAY_FIRST_SIGN: "D", **(orders_by_sign or {})}
    orders: dict[DateForm, str] = {}
    for form, dates in column.dates.items():
        order = _order(form, dates, known)
        if order is None:
            return None
        orders[form] = order
    days = set()
    for form, year, first, second in column.days:
        is_day_first = orders[form].startswith("D")
        month, day = (second, first) if is_day_first else (first, second)
        days.add(day_of(year, month, day))
    forms = sorted(orders.values(), key=lambda form: (form != _ISO, form))
    return ReadDates(tuple(forms), tuple(sorted(day for day in days if day is not None)))


def has_one_notation(column: ColumnProfile) -> bool:
    """Whether one notation can have written all dates or timestamps, so that no two are equal."""
    return bool(column.notations) and not column.has_varying_spaces


def has_milliseconds(column: ColumnProfile) -> bool:
    """Whether a column that is named as a time has milliseconds since 1970, of the years 1973 to
    2286.
    """
    is_time = not _TIME_WORDS.isdisjoint(words_of(column.name)) and not is_key_name(column.name)
    digits = column.numbers.fewest_digits, column.numbers.whole_digits
    is_long = digits in ((12, 12), (12, 13), (13, 13)) and not column.numbers.has_negatives
    is_plain = column.only({"whole"}) and "0 shortest" in (column.notations or ())
    return is_time and is_long and is_plain and not column.has_varying_spaces


def example_of(form: str) -> str:
    """Return the last day of 2026 in a form such as `D.M.Y`."""
    return form.replace("D", "31").replace("M", "12").replace("Y", "2026")


def shown_forms(forms: Iterable[str]) -> str:
    """Return forms as people write them, each by the last day of 2026."""
    return " and ".join(example_of(form) for form in forms)


def known_order(form: DateForm, dates: DatesOfForm) -> str | None:
    """Return the part that dates of one form begin with, `Y`, `D` or `M`, as far as they tell
    it themselves.
    """
    if form.order == "year":
        return "Y"
    is_day_first = dates.most_first > _LAST_MONTH
    is_month_first = dates.most_second > _LAST_MONTH
    if is_day_first == is_month_first:
        return None
    return "D" if is_day_first else "M"


def _order(form: DateForm, dates: DatesOfForm, known: Mapping[str, str]) -> str | None:
    first = known_order(form, dates)
    if first is None and not _has_both(dates):
        first = known.get(form.sign)
    return _PARTS[first].replace(" ", form.sign) if first else None


def _has_both(dates: DatesOfForm) -> bool:
    """Whether some dates begin with the day and others with the month."""
    return min(dates.most_first, dates.most_second) > _LAST_MONTH
