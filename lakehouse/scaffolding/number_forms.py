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
_SIGNS = {",": "comma", ".": "point"}
_LARGEST_SCALE = 6
"""Numbers of more decimals are measurements, and no amounts."""


_GROUP_DIGITS = 3
_EITHER = {"decimal_or_grouped", "comma_or_grouped"}
"""Forms of numbers that may have three decimals, or thousands."""
_WITH_COMMA = {"comma", "grouped_comma"}
_WITH_POINT = {"decimal", "grouped_decimal", "exponent"}


@dataclass(frozen=True)
class ReadNumbers:
    """How a column's numbers are read; of an `unclear` one, why that cannot be told."""

    type: str = "string"
    mark: str = "."
    is_grouped: bool = False
    unclear: str = ""
    guess: str = ""
    """What is taken of other columns, or of how most people write."""
    has_groups: bool = True
    """Whether thousands were seen that are grouped, and not only may come."""

    @property
    def note(self) -> str:
        """How the numbers are written, where casts do not read them as they are, or where they
        could be read otherwise.
        """
        return ", ".join(part for part in (self._form, self.guess) if part)

    @property
    def _form(self) -> str:
        if self.mark == ",":
            seen = "points between thousands" if self.has_groups else "no points so far"
            return f"decimal commas, {seen}"
        return "commas between thousands" if self.is_grouped else ""

    def value(self, text: str) -> Decimal:
        """Return a delivered number."""
        group = {",": ".", ".": ","}[self.mark]
        plain = text.strip().replace(group, "") if self.is_grouped else text.strip()
        return Decimal(plain.replace(",", "."))


def decimal_mark(column: ColumnProfile) -> str:
    """Return what stands before the decimals of a column's numbers; empty where its values do
    not tell, or tell both.
    """
    if not column.only(NUMBERS):
        return ""
    forms = set(column.forms)
    has_comma, has_point = bool(forms & _WITH_COMMA), bool(forms & _WITH_POINT)
    if has_comma == has_point:
        return ""
    return "," if has_comma else "."


def read_numbers(
    column: ColumnProfile, others_mark: str = "", *, points_may_group: bool = False
) -> ReadNumbers | None:
    """Return how a column's numbers are read; None where not all of its values are numbers.

    :param others_mark: what stands before decimals in other columns, where those tell.
    :param points_may_group: whether points may well stand between thousands, see `FileForms`.
    """
    if not column.only(NUMBERS):
        return None
    forms = set(column.forms)
    if forms == {"whole"}:
        return ReadNumbers(_whole_type(column))
    if forms & _WITH_COMMA and forms & _WITH_POINT:
        return ReadNumbers(unclear="some numbers have a decimal comma, and others a point")
    mark = decimal_mark(column)
    if mark:
        return _marked(column, mark)
    if forms >= _EITHER:
        return ReadNumbers(unclear="1,234 and 1.234, of which either may be over a thousand")
    # Of numbers with points in columns of another kind, such as coordinates, nothing follows.
    may_group = points_may_group and "decimal_or_grouped" in forms
    tells_nothing = others_mark == "." and may_group and not _has_plain_thousands(column)
    if others_mark and not tells_nothing:
        return _as_others(column, others_mark)
    if "comma_or_grouped" in forms:
        return ReadNumbers(unclear="1,234 may be over a thousand, or one and three decimals")
    if points_may_group or ("whole" in forms and not _has_plain_thousands(column)):
        return ReadNumbers(unclear="1.234 may be one and three decimals, or over a thousand")
    return ReadNumbers(
        _decimal_type(column), guess="three decimals, so that 1.234 is a little over one"
    )


def _marked(column: ColumnProfile, mark: str) -> ReadNumbers:
    """Return how numbers are read of which some tell what stands before decimals."""
    forms = set(column.forms)
    if mark == ",":
        has_groups = bool(forms & {"grouped_comma", "decimal_or_grouped"})
        # A later 1.200 is over a thousand here, and would else be read as one and a fifth.
        return ReadNumbers(_decimal_type(column), ",", is_grouped=True, has_groups=has_groups)
    is_grouped = bool(forms & {"grouped_decimal", "comma_or_grouped"})
    is_exponential = "exponent" in forms and not is_grouped
    return ReadNumbers(
        "double" if is_exponential else _decimal_type(column), is_grouped=is_grouped
    )


def _as_others(column: ColumnProfile, mark: str) -> ReadNumbers:
    """Return how numbers such as `1.234` are read beside columns that tell what stands before
    decimals.
    """
    sign = "," if "comma_or_grouped" in column.forms else "."
    if sign == mark:
        guess = f"as other columns have decimals after a {_SIGNS[mark]}"
        if mark == ",":
            return ReadNumbers(
                _decimal_type(column), mark, is_grouped=True, guess=guess, has_groups=False
            )
        # Casts read what has a point as it is, which needs no word.
        return ReadNumbers(_decimal_type(column), mark)
    if _has_plain_thousands(column):
        return ReadNumbers(
            unclear=f"1{sign}234 may be over a thousand, as are others without a {_SIGNS[sign]}"
        )
    digits = column.numbers.whole_digits + _GROUP_DIGITS
    kind = "bigint" if digits > _INT_DIGITS or is_key_name(column.name) else "int"
    guess = f"so that 1{sign}234 is over a thousand, as other columns have decimals after a"
    return ReadNumbers(kind, mark, is_grouped=True, guess=f"{guess} {_SIGNS[mark]}")


def _has_plain_thousands(column: ColumnProfile) -> bool:
    """Whether some number has thousands without a sign before the last three digits."""
    return column.numbers.whole_digits > _GROUP_DIGITS


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
