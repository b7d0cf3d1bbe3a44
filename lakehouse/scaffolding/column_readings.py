"""The type of a column in silver, and the conversion of its texts.

A type never makes two different texts equal, except for amounts, quantities and times; then the
note says so. A column that no type fits stays text.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

import pyarrow.compute as pc

from lakehouse.scaffolding.key_columns import is_key_name
from lakehouse.scaffolding.personal_columns import is_person_key
from lakehouse.scaffolding.sampled_column import ColumnProfile, matches, word_set
from lakehouse.tables.types import WIDEST

DAY_WORDS = word_set(
    "date day datum tag dt data fecha jour dia dob birthdate birthday birth born geburtsdatum"
    " geburtstag naissance nacimiento nascimento nascita geboortedatum urodzenia"
)
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
_MEASURES = word_set(_MEASURE_WORDS)
_MEASURE_ENDINGS = ("price", "amount", "betrag", "preis", "menge", "gewicht", "wert", "kosten")
_BOOLEANS = ({"true", "false"}, {"yes", "no"}, {"t", "f"}, {"y", "n"})

_WHOLE = "[+-]?[0-9]+"
_POINT = r"[+-]?[0-9]+(?:\.[0-9]*)?"
_EXPONENT = rf"{_POINT}[eE][+-]?[0-9]{{1,3}}"
_COMMA = "[+-]?[0-9]*,[0-9]+"
_POINT_GROUPS = r"[+-]?[1-9][0-9]{0,2}(?:\.[0-9]{3})+(?:,[0-9]+)?"
_NUMBERS = {".": f"{_POINT}|{_EXPONENT}", ",": f"{_WHOLE}|{_COMMA}|{_POINT_GROUPS}"}
"""Patterns by decimal mark."""
_AMBIGUOUS = "[+-]?[1-9][0-9]{0,2}[.,][0-9]{3}"
"""A little over one, or over a thousand."""
# As numbers, 007 and 7 would be equal, and 2E1 and 20.
_CODE = "[+-]?0[0-9]+(?:[.,][0-9]*)?|[0-9]+[eE][0-9]+"
_SWAPPED = str.maketrans(",.", ".,")
_INT_DIGITS, _BIGINT_DIGITS = 8, 18
"""Fewer than the types have, since later values can be larger."""
_MIN_PRECISION, _MIN_SCALE, _SPARE_DIGITS = 10, 2, 3
_MAX_SCALE = 6
"""Numbers with more decimals are measurements, not amounts."""

_DAY = "|".join(
    rf"[0-9]{{4}}{sign}[0-9]{{1,2}}{sign}[0-9]{{1,2}}|[0-9]{{1,2}}{sign}[0-9]{{1,2}}{sign}[0-9]{{4}}"
    for sign in ("-", r"\.", "/")
)
_COMPACT_DAY = "(?:19|20)[0-9]{6}"
_TIME = "[T ](?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.][0-9]{1,6}0*)?)?"
_OFFSET = r"\s*(?:[Zz]|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?)"
_MOMENT = rf"(?P<day>{_DAY}|{_COMPACT_DAY})(?P<time>(?:{_TIME})?)(?P<offset>(?:{_OFFSET})?)"
_DATE = rf"{_COMPACT_DAY}|(?:{_DAY})(?:{_TIME}(?:{_OFFSET})?)?"
_MIDNIGHT = "(?:[T ]0?0:00(?::00(?:[.]0+)?)?)?"
# Numbers and dates that are not read, such as `12 %`, `.5`, `1 204`, `3-Jan-25` and `1/31/26`.
_UNREAD = (
    r"(?:[€$£¥]|[A-Z]{3})?\s?[+-]?[.]?[0-9][0-9 .,:/'’\x{a0}\x{202f}T-]*"
    r"(?:\s?(?:[€$£¥%]|[A-Z]{3}))?"
    r"|[0-9]{1,2}[-./ ]\pL{3,9}[-./ ]+[0-9]{2,4}.{0,15}|\pL{3,9} [0-9]{1,2},? [0-9]{4}.{0,15}"
    "|[0-9/.:-]{6,10} [0-9:]{4,8} ?[AaPp][Mm]"
)
_EQUAL_TEXTS = "notations that become equal, such as 2.5 and 2.50, or 8:00 and 08:00"


@dataclass(frozen=True)
class Reading:
    """How a column is read.

    `note` describes a notation that casts do not read as it is. `unclear` is the reason why
    values that are no plain text stay text.
    """

    type: str = "string"
    note: str = ""
    unclear: str = ""
    function: str = ""
    """The function of `number_and_date_forms` that converts the texts."""
    arguments: tuple[str, ...] = ()
    """Further arguments of the function, as code."""
    days: Mapping[str, date] = field(default_factory=dict)
    """The days of a date or timestamp by their texts."""
    has_offsets: bool = False
    has_one_notation: bool = True


def reading_of(column: ColumnProfile) -> Reading:
    """Return how a column is read."""
    if column.file_type:
        return _read_typed(column)
    if not column.filled_rows:
        return Reading(unclear="empty in all rows")
    is_day = column.all_match(_COMPACT_DAY) and not DAY_WORDS.isdisjoint(column.words)
    return (
        (None if is_day else _read_numbers(column))
        or _read_dates(column)
        or _read_booleans(column)
        or Reading(unclear=_why_text(column))
    )


def _read_typed(column: ColumnProfile) -> Reading:
    """Return how a column of a file with types is read; texts can be dates."""
    reading = _read_dates(column)
    if column.file_type == "string":
        return reading or Reading()
    days = reading.days if reading and column.file_type in ("date", "timestamp") else {}
    return Reading(column.file_type, days=days, has_offsets=True)


def _why_text(column: ColumnProfile) -> str:
    """Return why most values have no type though they are numbers or dates; else empty."""
    numbers = "|".join([*_NUMBERS.values(), _DATE, _UNREAD])
    rows = column.matching_rows(numbers) - column.matching_rows(_CODE)
    if 2 * rows <= column.filled_rows:
        return ""
    return "numbers or dates with text or in other forms, such as 12 %, 1,204.50 or 3-Jan-25"


def _read_booleans(column: ColumnProfile) -> Reading | None:
    if len(column.values) > 8:
        return None
    values = column.values.to_pylist()
    words = {value.lower() for value in values}
    if not words <= set().union(*_BOOLEANS):
        return None
    if len(words) == 1 and not words & _BOOLEANS[0]:
        return Reading(unclear="one word in all rows, a code or a boolean")
    if len(words) < len(values) or not any(words <= pair for pair in _BOOLEANS):
        return Reading(unclear="several words for true or false, such as yes, Yes and true")
    return Reading("boolean")


def _read_numbers(column: ColumnProfile) -> Reading | None:
    """Return how numbers are read; None if not all values are numbers."""
    mark = next((mark for mark, numbers in _NUMBERS.items() if column.all_match(numbers)), None)
    if mark is None:
        return None
    if codes := column.matching_rows(_CODE):
        is_mixed = 2 * codes < column.filled_rows
        return Reading(unclear="numbers and codes such as 007 or 2E1" if is_mixed else "")
    if column.any_match(_AMBIGUOUS) and column.all_match(f"{_WHOLE}|{_AMBIGUOUS}"):
        return Reading(
            unclear="1.234 or 1,234 may be over a thousand, or one and three decimals"
        )
    notes = []
    if mark == ",":
        has_groups = column.any_match(r".*[0-9]\.[0-9].*")
        seen = "points between thousands" if has_groups else "no points so far"
        notes.append(f"decimal commas, {seen}")
    return _number_reading(_Numbers.of(column, mark), notes)


@dataclass(frozen=True)
class _Numbers:
    """The distinct numbers of a column, as texts such as `1,234.50` and as values."""

    column: ColumnProfile
    mark: str
    texts: list[str]
    values: list[Decimal]

    @classmethod
    def of(cls, column: ColumnProfile, mark: str) -> "_Numbers":
        """Read the numbers of a column; the other mark can separate thousands."""
        texts = column.values.to_pylist()
        if mark == ",":
            texts = [text.translate(_SWAPPED) for text in texts]
        return cls(column, mark, texts, [Decimal(text.replace(",", "")) for text in texts])

    @property
    def has_exponents(self) -> bool:
        return any("e" in text.lower() for text in self.texts)

    @property
    def is_whole(self) -> bool:
        """Whether no number has a decimal mark or an exponent."""
        return not self.has_exponents and not any("." in text for text in self.texts)

    @property
    def type(self) -> str:
        """A type that has all digits; empty if there is none."""
        digits = max(value.adjusted() + 1 for value in self.values)
        if self.is_whole:
            if digits > _BIGINT_DIGITS:
                return f"decimal({WIDEST},0)" if digits <= WIDEST else ""
            is_large = digits > _INT_DIGITS or is_key_name(self.column.name)
            return "bigint" if is_large else "int"
        fit_double = all(Decimal(repr(float(value))) == value for value in self.values)
        if not self.has_exponents:
            scale = max(_MIN_SCALE, max(map(_scale, self.texts)))
            precision = max(_MIN_PRECISION, max(1, digits) + _SPARE_DIGITS + scale)
            is_amount = scale <= _MAX_SCALE or not fit_double
            if is_amount and precision <= WIDEST:
                return f"decimal({precision},{scale})"
        return "double" if fit_double else ""

    @property
    def has_one_notation(self) -> bool:
        """Whether one way of writing gives all texts, so that different texts never are equal."""
        has_negative_zero = any(
            not value and "-" in text
            for value, text in zip(self.values, self.texts, strict=True)
        )
        if self.column.has_spaces or has_negative_zero:
            return False
        if self.has_exponents:
            return len(set(self.values)) == len(self.values)
        group = "," if any("," in text for text in self.texts) else ""
        decimals = [len(text.partition(".")[2]) for text in self.texts]
        if self.texts != [
            format(value, f"{group}.{scale}f")
            for value, scale in zip(self.values, decimals, strict=True)
        ]:
            return False
        needed = [*map(_scale, self.texts)]
        longest = max(decimals)
        # As many decimals, as few as possible, as floats of Python, or none for integers.
        return decimals in (
            [longest] * len(decimals),
            needed,
            [max(scale, 1) for scale in needed],
            [longest if scale else 0 for scale in needed],
        )

    @property
    def is_measure(self) -> bool:
        """Whether these are amounts or quantities; versions and codes have no minus."""
        if self.has_exponents or min(self.values) < 0:
            return True
        words = self.column.words
        return any(word in _MEASURES or word.endswith(_MEASURE_ENDINGS) for word in words)


def _scale(text: str) -> int:
    """Return how many decimals a number needs."""
    return len(text.partition(".")[2].rstrip("0"))


def _number_reading(numbers: _Numbers, notes: list[str]) -> Reading:
    column = numbers.column
    is_id = is_key_name(column.name) or is_person_key(column)
    is_code = is_id or not _CODES.isdisjoint(column.words)
    has_one_notation = numbers.has_one_notation
    if is_code and has_one_notation and column.all_match(r"[0-9]{1,18}\.0+"):
        return Reading("bigint", "whole numbers such as 17.0", function="whole_number")
    is_exact = has_one_notation and (numbers.is_whole or not is_code)
    if not is_exact and (is_code or not numbers.is_measure):
        return Reading(
            unclear="numbers or codes; as numbers, texts such as 2.1 and 2.10 are equal"
        )
    if not numbers.type:
        return Reading(unclear="numbers with more digits than a number type has")
    if not has_one_notation:
        notes.append(_EQUAL_TEXTS)
    if numbers.mark == ",":
        return Reading(numbers.type, ", ".join(notes), "", "decimal_comma", ("grouped=True",))
    return Reading(numbers.type, ", ".join(notes))


def _read_dates(column: ColumnProfile) -> Reading | None:
    """Return how dates and timestamps are read; None if not all values are some."""
    if not column.all_match(_DATE):
        return None
    fields = pc.extract_regex(column.values, f"^{_MOMENT}$")
    numbers = {day: _numbers(day) for day in pc.unique(fields.field("day")).to_pylist()}
    form = _date_form(numbers)
    if not form:
        return Reading(
            unclear="dates in several forms, or of which the day or the month may come first"
        )
    order = [part for part in form if part in "YMD"]
    days = {day: _date(dict(zip(order, parts, strict=True))) for day, parts in numbers.items()}
    if None in days.values():
        return None
    times, offsets = fields.field("time"), fields.field("offset")
    has_offsets = bool(pc.any(matches(offsets, ".+")).as_py())
    has_times = has_offsets or not pc.all(matches(times, _MIDNIGHT)).as_py()
    rests = pc.unique(pc.binary_join_element_wise(times, offsets, "")).to_pylist()
    has_one_notation = (
        not column.has_spaces
        and _has_one_padding([part for parts in numbers.values() for part in parts])
        and _has_one_padding([rest[1:].partition(":")[0] for rest in rests])
        and len({re.sub("[0-9]", "9", rest.partition(":")[2]) for rest in rests}) == 1
    )
    is_iso = form == "Y-M-D"
    example = form.replace("D", "31").replace("M", "12").replace("Y", "2026")
    notes = [] if is_iso else [f"dates such as {example}"]
    if not has_one_notation:
        notes.append(_EQUAL_TEXTS)
    return Reading(
        "timestamp" if has_times else "date",
        ", ".join(notes),
        function="" if is_iso else "iso_date",
        arguments=() if is_iso else (repr(form),),
        days={text: day for text, day in days.items() if day is not None},
        has_offsets=has_offsets,
        has_one_notation=has_one_notation,
    )


def _numbers(day: str) -> list[str]:
    """Return the numbers of a date in their order."""
    return [day[:4], day[4:6], day[6:]] if day.isdigit() else re.split("[-./]", day)


def _date_form(numbers: Mapping[str, Sequence[str]]) -> str:
    """Return the common form of dates, such as D.M.Y; empty if it is not clear."""
    shapes = {(re.sub("[0-9]", "", day)[:1], len(parts[0])) for day, parts in numbers.items()}
    if len({(sign, length == 4) for sign, length in shapes}) > 1:
        return ""
    sign, length = shapes.pop()
    if length == 4:
        return sign.join("YMD")
    first, second = (max(int(parts[at]) for parts in numbers.values()) for at in (0, 1))
    if second <= 12 and (first > 12 or sign == "."):
        return sign.join("DMY")
    return sign.join("MDY") if first <= 12 < second else ""


def _has_one_padding(numbers: Iterable[str]) -> bool:
    """Whether all numbers have two digits or more, or none starts with 0."""
    texts = [number for number in numbers if number]
    return all(len(text) > 1 for text in texts) or not any(
        text.startswith("0") and len(text) > 1 for text in texts
    )


def _date(parts: Mapping[str, str]) -> date | None:
    """Return a date; None if there is no such day."""
    try:
        return date(int(parts["Y"]), int(parts["M"]), int(parts["D"]))
    except ValueError:
        return None
