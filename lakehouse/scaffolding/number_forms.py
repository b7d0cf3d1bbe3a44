"""Which numbers a column holds: their type, and how they are written."""

from dataclasses import dataclass, replace
from decimal import Decimal

from lakehouse.scaffolding.column_profile import ColumnProfile
from lakehouse.scaffolding.people import stands_for_person
from lakehouse.scaffolding.uniqueness import is_key_name
from lakehouse.scaffolding.values import NUMBERS
from lakehouse.scaffolding.words import words_of
from lakehouse.tables.types import WHOLE_NUMBERS, WIDEST

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
_CODES = {"version", "rev", "section", "clause", "chapter", "article", "tariff", "hs"}
"""Words for identifiers that are not keys: 2.1 and 2.10 are two versions."""
_MEASURE_WORDS = """
    amount price cost costs total subtotal sum net gross tax vat fee discount balance value rate
    ratio share percent percentage pct score rating weight mass height width length depth distance
    size area volume quantity qty count duration speed temperature temp humidity pressure
    latitude longitude lat lon mag avg mean median min max revenue sales profit margin salary
    income budget change stock eur usd gbp chf
    betrag preis summe menge anzahl gewicht wert kosten umsatz netto brutto rabatt steuer saldo
    montant prix quantite poids valeur importe monto precio cantidad valor preco quantidade
    importo prezzo quantita bedrag prijs aantal kwota cena ilosc belopp pris antal
"""
"""Words for amounts and quantities, in the languages of most files: 2.5 and 2.50 are one price."""
_MEASURES = frozenset(_MEASURE_WORDS.split())
_MEASURE_ENDINGS = ("price", "amount", "betrag", "preis", "menge", "gewicht", "wert", "kosten")


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
    is_pointed: bool = False
    """Whether whole numbers are written as `17.0`."""
    merged: str = ""
    """Examples of notations whose equal values become equal."""

    @property
    def note(self) -> str:
        """How the numbers are written, where casts do not read them as they are, or where they
        could be read otherwise.
        """
        merged = f"notations that become equal, such as {self.merged}" if self.merged else ""
        return ", ".join(part for part in (self._form, self.guess, merged) if part)

    @property
    def _form(self) -> str:
        if self.mark == ",":
            seen = "points between thousands" if self.has_groups else "no points so far"
            return f"decimal commas, {seen}"
        if self.is_pointed:
            return "whole numbers such as 17.0"
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

    Texts of an identifier stay different. So do those of other columns, except measures: their
    notation may be lost, which is noted.

    :param others_mark: what stands before decimals in other columns, where those tell.
    :param points_may_group: whether points may well stand between thousands, see `FileForms`.
    """
    if not column.only(NUMBERS):
        return None
    numbers = _read_numbers(column, others_mark, points_may_group=points_may_group)
    if numbers.unclear:
        return numbers
    merged = _merged(column, numbers)
    words = words_of(column.name)
    is_key = is_key_name(column.name) or stands_for_person(column)
    if is_key or not _CODES.isdisjoint(words):
        if column.is_whole and not merged:
            return (
                numbers if "whole" in column.forms else ReadNumbers("bigint", is_pointed=True)
            )
        if merged or numbers.type not in WHOLE_NUMBERS:
            texts = merged or "2.1 and 2.10"
            return ReadNumbers(unclear=f"identifiers; as numbers, {texts} would be equal")
    # No version and no code has a minus.
    is_measure = column.numbers.has_negatives or "exponent" in column.forms
    is_measure |= any(word in _MEASURES or word.endswith(_MEASURE_ENDINGS) for word in words)
    if merged and not is_measure:
        return ReadNumbers(unclear=f"numbers or codes; as numbers, {merged} would be equal")
    return replace(numbers, merged=merged)


def _merged(column: ColumnProfile, numbers: ReadNumbers) -> str:
    """Return examples of texts that may differ and be the same number; empty where one notation
    can have written all.
    """
    # 1,234 is over a thousand where decimals have points.
    other_form = "decimal_or_grouped" if numbers.mark == "," else "comma_or_grouped"
    is_grouped = other_form in column.forms
    shared = [one for one in column.notations or () if one.startswith("grouped") == is_grouped]
    # +5 next to -5 is a change; +49 alone may be a dial code, and 49 the same.
    is_unsigned = column.numbers.has_negatives or any("+" not in one for one in shared)
    examples = {
        "1.5e3 and 1500": "exponent" in column.forms,
        "+49 and 49, or 2.1 and 2.10": column.forms.keys() != {"exponent"}
        and not (shared and is_unsigned),
        "numbers that differ after 15 digits": numbers.type == "double"
        and not column.numbers.fits_double,
        "'17' and ' 17'": column.has_varying_spaces,
    }
    return ", or ".join(texts for texts, is_so in examples.items() if is_so)


def _read_numbers(
    column: ColumnProfile, others_mark: str, *, points_may_group: bool
) -> ReadNumbers:
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
    if scale > _LARGEST_SCALE and column.numbers.fits_double:
        return "double"
    precision = max(_SMALLEST_PRECISION, column.numbers.whole_digits + _SPARE_DIGITS + scale)
    return f"decimal({precision},{scale})" if precision <= WIDEST else "double"
