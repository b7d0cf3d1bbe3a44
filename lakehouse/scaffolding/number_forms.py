"""Which numbers a column holds: their type, and how they are written."""

from dataclasses import dataclass
from decimal import Decimal

from lakehouse.scaffolding.column_profile import ColumnProfile
from lakehouse.scaffolding.uniqueness import is_key_name
from lakehouse.scaffolding.values import NUMBERS
from lakehouse.tables.types import WIDEST

_INT_DIGITS = 8
"""Whole numbers of more digits are bigint, so that larger ones than were seen are not refused."""
_BIGINT_DIGITS = 18
_SMALLEST_PRECISION, _SMALLEST_SCALE = 10, 2
_SPARE_DIGITS = 3
_LARGEST_SCALE = 6
"""Numbers of more decimals are measurements, and no amounts."""


@dataclass(frozen=True)
class ReadNumbers:
    """How a column's numbers are read; of an `unclear` one, why that cannot be told."""

    type: str = "string"
    mark: str = "."
    is_grouped: bool = False
    unclear: str = ""

    @property
    def note(self) -> str:
        """How the numbers are written, where casts do not read them as they are."""
        if self.mark == ",":
            return "decimal commas" + (", points between thousands" if self.is_grouped else "")
        return "commas between thousands" if self.is_grouped else ""

    def value(self, text: str) -> Decimal:
        """Return a delivered number."""
        group = {",": ".", ".": ","}[self.mark]
        plain = text.strip().replace(group, "") if self.is_grouped else text.strip()
        return Decimal(plain.replace(",", "."))


def read_numbers(column: ColumnProfile) -> ReadNumbers | None:
    """Return how a column's numbers are read; None where not all of its values are numbers."""
    if not column.only(NUMBERS):
        return None
    forms = set(column.forms)
    if forms == {"whole"}:
        return ReadNumbers(_whole_type(column))
    has_comma = bool(forms & {"comma", "grouped_comma"})
    has_point = bool(forms & {"decimal", "grouped_decimal", "exponent"})
    if has_comma and has_point:
        return ReadNumbers(unclear="some numbers have a decimal comma, and others a point")
    if has_comma:
        is_grouped = bool(forms & {"grouped_comma", "decimal_or_grouped"})
        return ReadNumbers(_decimal_type(column), ",", is_grouped)
    if "comma_or_grouped" in forms and not has_point:
        return ReadNumbers(unclear="1,234 may be over a thousand, or one and three decimals")
    is_grouped = bool(forms & {"grouped_decimal", "comma_or_grouped"})
    is_exponential = "exponent" in forms and not is_grouped
    return ReadNumbers(
        "double" if is_exponential else _decimal_type(column), is_grouped=is_grouped
    )


def _whole_type(column: ColumnProfile) -> str:
    digits = column.numbers.whole_digits
    if digits > _BIGINT_DIGITS:
        return f"decimal({WIDEST},0)" if digits <= WIDEST else "string"
    return "bigint" if digits > _INT_DIGITS or is_key_name(column.name) else "int"


def _decimal_type(column: ColumnProfile) -> str:
    scale = max(_SMALLEST_SCALE, column.numbers.scale)
    if scale > _LARGEST_SCALE:
        return "double"
    precision = max(_SMALLEST_PRECISION, column.numbers.whole_digits + _SPARE_DIGITS + scale)
    return f"decimal({precision},{scale})" if precision <= WIDEST else "double"
