"""In which order a column writes its dates, as far as its values tell."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from lakehouse.scaffolding.column_profile import ColumnProfile, DateForm, DatesOfForm
from lakehouse.scaffolding.values import day_of

_LAST_MONTH = 12
_ISO = "Y-M-D"
COMPACT = "YMD"
"""Dates without a sign between their parts, such as 20261231."""


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


def read_dates(column: ColumnProfile) -> ReadDates | None:
    """Return how a column's dates are read; None where nothing tells which of two numbers is
    the month.
    """
    orders: dict[DateForm, str] = {}
    for form, dates in column.dates.items():
        order = _order(form, dates)
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


def example_of(form: str) -> str:
    """Return the last day of 2026 in a form such as `D.M.Y`."""
    return form.replace("D", "31").replace("M", "12").replace("Y", "2026")


def shown_forms(forms: Iterable[str]) -> str:
    """Return forms as people write them, each by the last day of 2026."""
    return " and ".join(example_of(form) for form in forms)


def _order(form: DateForm, dates: DatesOfForm) -> str | None:
    if form.order == "year":
        return f"Y{form.sign}M{form.sign}D"
    is_day_first = dates.most_first > _LAST_MONTH
    is_month_first = dates.most_second > _LAST_MONTH
    if is_day_first == is_month_first:
        return None
    return f"D{form.sign}M{form.sign}Y" if is_day_first else f"M{form.sign}D{form.sign}Y"
