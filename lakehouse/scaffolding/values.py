"""What a single delivered value looks like: a number, a date, an address, or text; decided by
its form alone.
"""

import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Literal, get_args

from lakehouse.scaffolding.notations import (
    Notations,
    date_notations,
    number_notations,
    shape_of,
)

NumberForm = Literal[
    "whole",
    "decimal",
    "decimal_or_grouped",
    "comma",
    "comma_or_grouped",
    "grouped_decimal",
    "grouped_comma",
    "exponent",
]
Form = NumberForm | Literal["code", "boolean", "date", "unread_date", "unread_number", "text"]
Order = Literal["year", "day_or_month"]
"""Which part of a date stands first; of two numbers before a year only many values tell."""
NUMBERS: frozenset[NumberForm] = frozenset(get_args(NumberForm))
_NUMBERS: tuple[tuple[Form, re.Pattern[str]], ...] = (
    # As numbers, 007 and 7 would be equal, and 2E1 and 20.
    ("code", re.compile(r"[+-]?0[0-9]+(?:[.,][0-9]*)?|[0-9]+[eE][0-9]+")),
    ("whole", re.compile(r"[+-]?[0-9]+")),
    ("decimal_or_grouped", re.compile(r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}")),
    ("comma_or_grouped", re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")),
    ("decimal", re.compile(r"[+-]?[0-9]*\.[0-9]+|[+-]?[0-9]+\.")),
    ("comma", re.compile(r"[+-]?[0-9]*,[0-9]+")),
    (
        "grouped_decimal",
        re.compile(r"[+-]?[1-9][0-9]{0,2}(?:(?:,[0-9]{3})+\.[0-9]+|(?:,[0-9]{3}){2,})"),
    ),
    (
        "grouped_comma",
        re.compile(r"[+-]?[1-9][0-9]{0,2}(?:(?:\.[0-9]{3})+,[0-9]+|(?:\.[0-9]{3}){2,})"),
    ),
    ("exponent", re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]{1,3}")),
)
_BOOLEANS = frozenset({"true", "false", "yes", "no", "t", "f", "y", "n"})
# The times and offsets that `lakehouse.tables.casts` reads.
_TIME = (
    r"(?:[T ](?P<time>[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?)"
    r"\s*(?P<offset>[Zz]|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_YEAR_FIRST = re.compile(
    rf"(?P<year>[0-9]{{4}})(?P<sign>[-./])(?P<first>[0-9]{{1,2}})(?P=sign)(?P<second>[0-9]{{1,2}}){_TIME}"
)
_YEAR_LAST = re.compile(
    rf"(?P<first>[0-9]{{1,2}})(?P<sign>[-./])(?P<second>[0-9]{{1,2}})(?P=sign)(?P<year>[0-9]{{4}}){_TIME}"
)
_MONTHS = "jan|feb|mar|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez"
# Dates that are seen to be some, and that no cast reads: with names of months, years of two
# digits, or halves of days.
_UNREAD_DATE = re.compile(
    r"[0-9]{1,2}[-./ ]"
    rf"(?:[0-9]{{1,2}}|(?:{_MONTHS})[a-z]*)\.?[-./ ](?:[0-9]{{2}}){{1,2}}(?:[T ,].*)?"
    rf"|(?:{_MONTHS})[a-z]* [0-9]{{1,2}},? [0-9]{{4}}(?:[T ,].*)?"
    r"|[0-9]{4}[-./][0-9]{1,2}[-./][0-9]{1,2}[T ].*",
    re.IGNORECASE,
)
# Numbers that are seen to be some, and that no cast reads: with spaces or quotes between
# thousands, or with a sign of money or percent.
_MONEY = r"(?:[€$£¥%]|EUR|USD|CHF|GBP)"
_DIGITS = (
    r"[1-9][0-9]{0,2}(?:[ \u00a0\u202f'’.,][0-9]{3})+(?:[.,][0-9]+)?|[0-9]+(?:[.,][0-9]+)?"
)
_UNREAD_NUMBER = re.compile(
    rf"[+-]?(?:{_MONEY}\s?)?[+-]?(?:{_DIGITS})(?:\s?{_MONEY})?", re.IGNORECASE
)
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s.]{2,}")
# Behind the first 0 a digit follows, or three behind a sign, other than in `0-6 6-3 6-2`.
_PHONE = re.compile(
    r"(?=.*[+ ()/-])(?:\+[0-9]|\([0-9]|0(?:[0-9]|[ (/-]+[0-9]{3}))[0-9 ()/-]{5,17}[0-9]"
)
_FULL_NAME = re.compile(r"[^\W\d_][\w'’.-]*(?: [^\W\d_][\w'’.-]*){1,3}")
_DOUBLE_DIGITS = 15
"""Decimal digits that each double has."""
_LONGEST = 100
"""Characters of the longest value that is looked at closely; forms that were found are kept."""
_MIDNIGHT = re.compile(r"0{1,2}:00(?::00(?:\.0+)?)?")


@dataclass(frozen=True)
class DateParts:
    """The numbers of a date as they stand, and whether a time follows them."""

    order: Order
    sign: str
    year: int
    first: int
    second: int
    has_time: bool
    """Whether a time other than midnight follows."""
    has_offset: bool = False
    """Whether that says how far from UTC it is."""
    notations: Notations = frozenset()

    @property
    def can_be_one(self) -> bool:
        """Whether some order of its numbers is a day that there is."""
        if self.order == "year":
            return day_of(self.year, self.first, self.second) is not None
        either = (self.first, self.second), (self.second, self.first)
        return any(day_of(self.year, month, day) for month, day in either)


@dataclass(frozen=True)
class Value:
    """The form of a value, and of a number its digits before and after the mark."""

    form: Form
    whole_digits: int = 0
    scale: int = 0
    date: DateParts | None = None
    looks_like: str = ""
    """`email`, `phone` or `full_name`."""
    notations: Notations = frozenset()
    """What can have written a number or a date."""
    is_negative: bool = False
    fits_double: bool = True
    """Whether a double has all digits of the number."""


def day_of(year: int, month: int, day: int) -> date | None:
    """Return the day of three numbers; None where there is none such."""
    try:
        return date(year, month, day)
    except ValueError:
        return None


def value_of(text: str) -> Value:
    """Return the form of a value; white space around it counts for nothing, as for a cast."""
    text = text.strip()
    return _value_of(text) if len(text) <= _LONGEST else Value("text")


@lru_cache(maxsize=1 << 16)
def _value_of(text: str) -> Value:
    for form, pattern in _NUMBERS:
        if pattern.fullmatch(text):
            return _number(form, text)
    if text.lower() in _BOOLEANS:
        return Value("boolean")
    parts = _date_parts(text)
    if parts is not None and parts.can_be_one:
        return Value("date", date=parts, notations=parts.notations)
    if parts is None and _UNREAD_DATE.fullmatch(text):
        return Value("unread_date")
    if _EMAIL.fullmatch(text):
        return Value("text", looks_like="email")
    # `0000-00-00` is a date that there is not.
    if parts is None and _PHONE.fullmatch(text):
        return Value("text", looks_like="phone")
    if _UNREAD_NUMBER.fullmatch(text):
        return Value("unread_number")
    return Value("text", looks_like="full_name" if _FULL_NAME.fullmatch(text) else "")


def _number(form: Form, text: str) -> Value:
    if form in ("exponent", "code"):
        return Value(form, is_negative=text.startswith("-"))
    mark = "," if form in ("comma", "comma_or_grouped", "grouped_comma") else "."
    whole, _, decimals = text.lstrip("+-").partition(mark)
    whole = re.sub(r"[.,]", "", whole)
    scale = len(decimals.rstrip("0"))
    number = f"{whole or 0}.{decimals}"
    return Value(
        form,
        whole_digits=len(whole),
        scale=scale,
        notations=_notations(form, shape_of(text), mark),
        is_negative=text.startswith("-"),
        fits_double=len(whole) + scale <= _DOUBLE_DIGITS
        or Decimal(repr(float(number))) == Decimal(number),
    )


@lru_cache(maxsize=1 << 14)
def _notations(form: Form, text: str, mark: str) -> Notations:
    """Return the notations of a number, and those of it where its mark may separate thousands."""
    notations = grouped = number_notations(text, mark)
    if form in ("comma_or_grouped", "decimal_or_grouped"):
        grouped = number_notations(text, "." if mark == "," else ",")
    return notations | {f"grouped {one}" for one in grouped}


def _date_parts(text: str) -> DateParts | None:
    match = _YEAR_FIRST.fullmatch(text)
    order: Order = "year"
    if match is None:
        match, order = _YEAR_LAST.fullmatch(text), "day_or_month"
    if match is None:
        return None
    time, offset = match["time"], match["offset"]
    behind = text[max(match.end("year"), match.end("second")) :].removesuffix(offset or "")
    return DateParts(
        order,
        match["sign"],
        int(match["year"]),
        int(match["first"]),
        int(match["second"]),
        has_time=time is not None and not (_MIDNIGHT.fullmatch(time) and not offset),
        has_offset=offset is not None,
        notations=date_notations(
            f"{order}{match['sign']}",
            (shape_of(match["first"]), shape_of(match["second"])),
            shape_of(behind),
            offset or "",
        ),
    )
