"""How the files as a whole write numbers and dates: what one column alone does not tell, others
beside it may.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lakehouse.scaffolding.column_profile import ColumnProfile
from lakehouse.scaffolding.date_forms import known_order
from lakehouse.scaffolding.number_forms import decimal_mark


@dataclass(frozen=True)
class FileForms:
    """What is known of all columns together."""

    decimal_mark: str = ""
    """What stands before decimals; empty where no column tells, or they differ."""
    has_decimal_commas: bool = False
    """Whether some column has."""
    date_orders: Mapping[str, str] = field(default_factory=dict)
    """By the sign between the numbers of a date, which of day and month is first: `D` or `M`."""
    delimiter: str = ","
    """What stands between the fields."""

    @property
    def points_may_group(self) -> bool:
        """Whether nothing tells that `1.234` is a little over one: where commas stand before
        decimals, semicolons most often stand between fields.
        """
        return self.has_decimal_commas or self.delimiter == ";"


UNKNOWN = FileForms()
"""Of columns that stand alone."""


def file_forms(columns: Iterable[ColumnProfile], delimiter: str) -> FileForms:
    """Return how columns of the same files write what their values tell for sure."""
    profiles = list(columns)
    marks = {decimal_mark(profile) for profile in profiles} - {""}
    return FileForms(
        decimal_mark=next(iter(marks)) if len(marks) == 1 else "",
        has_decimal_commas="," in marks,
        date_orders=_date_orders(profiles),
        delimiter=delimiter,
    )


def _date_orders(profiles: Iterable[ColumnProfile]) -> dict[str, str]:
    orders: dict[str, set[str]] = {}
    for profile in profiles:
        for form, dates in profile.dates.items():
            order = known_order(form, dates)
            if order in ("D", "M"):
                orders.setdefault(form.sign, set()).add(order)
    return {sign: first.pop() for sign, first in orders.items() if len(first) == 1}
