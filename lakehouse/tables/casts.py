"""How delivered text becomes a value: strictly, so that what Spark would round or guess is
refused instead.

Spark's own cast takes `2024` for the first of January, and rounds `1.005` to fit a decimal.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from lakehouse.tables.quoting import literal
from lakehouse.tables.types import WIDEST

_DECIMAL = re.compile(r"^decimal\((\d+),\s*(\d+)\)$")
_QUICK = 18
_DAY = r"^\s*[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_WHOLE_DAY = rf"{_DAY}\s*$"
_MINUTE = rf"{_DAY}[T ][0-9]{{1,2}}:[0-9]{{2}}"
_OFFSET = r"([Zz]|UTC|GMT|(UTC|GMT)?[+-][0-9]{2}(:?[0-9]{2})?)\s*$"
_MOMENT = rf"{_MINUTE}(:[0-9]{{2}}([.][0-9]+)?)?\s*({_OFFSET[:-1]})?$"
"""A moment with or without an offset. Names of zones are not taken: what they mean changes with
the law.
"""
_OFFSET_BEFORE = _OFFSET.replace("(UTC|GMT)?", "")
_MOMENT_BEFORE = _MOMENT.replace("(UTC|GMT)?", "")
"""The patterns in `Cast.identity`, which must not change."""
_FITS_FLOAT = 38
"""Digits of a number that is not too large for a `float`, and so for a `double`."""
# Java leaves out all of these characters at both ends.
_NUMBER = r"^[\x00-\x20]*[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?[\x00-\x20]*$"
_NO_NUMBER = r"(?i)^[\x00-\x20]*[+-]?(nan|inf|infinity)[\x00-\x20]*$"


@dataclass(frozen=True)
class Cast:
    """How delivered text is read as a type.

    `time_zone` is where moments without an offset were written.
    """

    type: str
    time_zone: str = "UTC"

    def sql(self, raw: str) -> str:
        """Return SQL for a delivered value as the type, see `cast_sql`."""
        return cast_sql(raw, self.type, self.time_zone)

    def identity(self, raw: str) -> str:
        """Return what tells this cast from others: its SQL as it was before years were bounded.

        A rule says by it what it is, so that tables whose rules stay are not computed anew.
        """
        return _cast_sql(raw, self.type, self.time_zone, is_bounded=False)

    def quick_sql(self, raw: str) -> str:
        """Return longer SQL for the same value, which takes less time where text is as usual; what
        is no text is read as ever.
        """
        cast = self.sql(raw)
        decimal = _DECIMAL.match(self.type)
        if decimal is None:
            return cast
        quick_scale, scale = _QUICK - int(decimal[1]) + int(decimal[2]), int(decimal[2])
        if quick_scale <= scale:
            return cast
        is_usual = _is_usual_decimal(raw, quick_scale, scale)
        return f"(CASE WHEN {is_usual} THEN try_cast({raw} AS {self.type}) ELSE {cast} END)"


def moment_of(text: str) -> datetime:
    """Read a moment in Python; one without an offset is of UTC, as for a cast.

    :raises ValueError: when it is none.
    """
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def is_moment_sql(raw: str) -> str:
    """Return the predicate that a value is a `timestamp`, and so needs no time zone to be read.

    Spark knows of which type it is before it looks at rows.
    """
    return f"typeof({raw}) = 'timestamp'"


def cast_sql(raw: str, to: str, time_zone: str = "UTC") -> str:
    """Return SQL for a delivered value as a type; NULL where it cannot be read as one without
    losing something.

    :param raw: SQL of the delivered value.
    :param to: the type, as Spark writes it.
    :param time_zone: where moments without an offset were written, and whose days a moment
        falls on.
    """
    return _cast_sql(raw, to, time_zone, is_bounded=True)


def _cast_sql(raw: str, to: str, time_zone: str, *, is_bounded: bool) -> str:
    decimal = _DECIMAL.match(to)
    if decimal:
        return _decimal(raw, to, int(decimal[1]) - int(decimal[2]), int(decimal[2]))
    if to == "date":
        return _date(raw, time_zone, is_bounded=is_bounded)
    if to == "timestamp":
        return _timestamp(raw, time_zone, is_bounded=is_bounded)
    if to == "timestamp_ntz" and is_bounded:
        return _wall_time(raw)
    if to in ("double", "float") and is_bounded:
        return _floating(raw, to)
    return f"try_cast({raw} AS {to})"


def _floating(raw: str, to: str) -> str:
    """Refuse what Java takes for a number in a program: `15F`, `12D` and `0x1p3`; and what is too
    large, of which Java makes infinity. Words for that and for NaN are taken as Spark does.

    Short text without a letter of these is known without a regular expression.
    """
    text, cast = f"CAST({raw} AS string)", f"try_cast({raw} AS {to})"
    letters = " OR ".join(f"contains({text}, '{letter}')" for letter in "dDeEfFxX")
    is_usual = f"length({text}) <= {_FITS_FLOAT} AND NOT ({letters})"
    is_finite = f"abs({cast}) < CAST('Infinity' AS {to})"
    return (
        f"(CASE WHEN {_is_no_text(raw)} OR {is_usual} THEN {cast} "
        f"WHEN {text} RLIKE {literal(_NUMBER)} THEN CASE WHEN {is_finite} THEN {cast} END "
        f"WHEN {text} RLIKE {literal(_NO_NUMBER)} THEN {cast} END)"
    )


def _wall_time(raw: str) -> str:
    """Take a day, or a moment without an offset: Spark would leave an offset out in silence."""
    text = f"CAST({raw} AS string)"
    moment = _bounded(f"try_cast({raw} AS timestamp_ntz)", raw)
    return (
        f"(CASE WHEN {_is_no_text(raw)} OR {text} RLIKE {literal(_WHOLE_DAY)} OR "
        f"{text} RLIKE {literal(_MOMENT)} AND NOT {text} RLIKE {literal(_OFFSET)} "
        f"THEN {moment} END)"
    )


def _is_no_text(raw: str) -> str:
    """Return the predicate of a value of another type; Spark knows before it looks at rows."""
    return f"typeof({raw}) <> 'string'"


def _decimal(raw: str, to: str, whole_digits: int, scale: int) -> str:
    """Refuse what has more digits after the point than the type holds: it would be rounded.
    Java takes any digits.

    Eighteen digits fit a machine word, and comparing with more takes several times as long:
    short text that has no exponent cannot have more. Of longer text its digits are counted,
    since what they are compared with is rounded too.
    """
    text = f"CAST({raw} AS string)"
    cast, quick_scale = f"try_cast({raw} AS {to})", _QUICK - whole_digits
    is_ascii = f"octet_length({text}) = length({text})"
    is_plain = rf"^\s*[+-]?[0-9]*([.][0-9]{{0,{scale}}}0*)?\s*$"
    others = (
        f"WHEN {text} RLIKE {literal(is_plain)} THEN {cast} "
        f"WHEN {_exponential(raw, cast, whole_digits, scale)} THEN {cast}"
    )
    if quick_scale > scale:
        is_short = f"length({text}) <= {quick_scale + 1} AND NOT contains(lower({text}), 'e')"
        same = f"{cast} = try_cast({raw} AS decimal({_QUICK},{quick_scale}))"
        others = (
            f"WHEN {is_short} THEN CASE WHEN {is_ascii} AND {same} THEN {cast} END {others}"
        )
    return f"(CASE {others} END)"


def _is_usual_decimal(raw: str, quick_scale: int, scale: int) -> str:
    """Return the predicate of short text with no more digits after the point than the type holds,
    and no exponent: to compare it with what it is rounded to would read it three times.
    """
    text = f"CAST({raw} AS string)"
    return (
        # Spark knows of which type it is before it looks at rows.
        f"typeof({raw}) = 'string' AND length({text}) <= {quick_scale + 1}"
        f" AND octet_length({text}) = length({text})"
        f" AND (instr({text}, '.') = 0 OR length({text}) - instr({text}, '.') <= {scale})"
        f" AND NOT contains({text}, 'e') AND NOT contains({text}, 'E')"
    )


def _exponential(raw: str, cast: str, whole_digits: int, scale: int) -> str:
    """Return the predicate of a number with an exponent that is held as it is: compared where
    all its digits fit.
    """
    widest = max(WIDEST - whole_digits, scale)
    # One digit of a negative exponent moves the point by nine places at most.
    exponent, decimals = (
        (r"([+]?[0-9]{1,2}|-[0-9])", widest - 9) if widest >= 9 else (r"[+]?[0-9]{1,2}", widest)
    )
    is_bounded = rf"^\s*[+-]?[0-9]*([.][0-9]{{0,{decimals}}})?[eE]{exponent}\s*$"
    exact = f"try_cast({raw} AS decimal({WIDEST},{widest}))"
    return f"CAST({raw} AS string) RLIKE {literal(is_bounded)} AND {cast} = {exact}"


def _date(raw: str, time_zone: str, *, is_bounded: bool) -> str:
    """Take a whole date, or a moment's day where the moment was; a date in its usual form needs
    no closer look. A `timestamp` is a moment too: as text it would be one without an offset.
    """
    moment, day = f"try_cast({raw} AS timestamp)", f"try_cast({raw} AS date)"

    def there(value: str) -> str:
        return f"CAST(from_utc_timestamp({value}, {literal(time_zone)}) AS date)"

    local_day, utc_day = there(moment), f"CAST({moment} AS date)"
    is_usual = f"length(trim({raw})) = 10 AND {_starts_as_a_day(raw)}"
    usual_day, typed, pattern, offset = day, "", _MOMENT_BEFORE, _OFFSET_BEFORE
    if is_bounded:
        is_usual += f" AND {_is_far_inside(raw)} AND {_is_digit(f'trim({raw})', -1)}"
        typed = f"WHEN {is_moment_sql(raw)} THEN {_bounded(local_day, raw)} "
        pattern, offset, local_day = _MOMENT, _OFFSET, there(_with_offset(raw))
        day, local_day, utc_day = (_bounded(one, raw) for one in (day, local_day, utc_day))
    return (
        f"(CASE {typed}WHEN {is_usual} THEN {usual_day}"
        f" WHEN {raw} RLIKE {literal(_WHOLE_DAY)} THEN {day}"
        f" WHEN NOT coalesce({raw} RLIKE {literal(pattern)}, false) THEN NULL"
        f" WHEN {raw} RLIKE {literal(offset)} THEN {local_day} ELSE {utc_day} END)"
    )


def _timestamp(raw: str, time_zone: str, *, is_bounded: bool) -> str:
    """Take a day or a moment, in UTC where it has an offset; Spark takes a time alone for one
    of today.

    A moment in its usual form is known without a regular expression, which would take most of a
    load's time.
    """
    text, moment = f"trim({raw})", f"try_cast({raw} AS timestamp)"
    local = f"to_utc_timestamp({moment}, {literal(time_zone)})"
    has_offset = f"(right({text}, 1) = 'Z' OR substr({text}, -6, 1) IN ('+', '-'))"
    is_usual = (
        f"length({text}) > 16 AND {_starts_as_a_day(raw)} AND substr({text}, 14, 1) = ':' AND"
        f" {has_offset}"
    )
    usual_moment, zoned, typed = moment, moment, ""
    pattern, offset = _MOMENT_BEFORE, _OFFSET_BEFORE
    if is_bounded:
        # Spark also takes one digit for the seconds, and names of zones.
        is_usual = (
            f"substr({text}, 17, 1) = ':' AND {_starts_as_a_day(raw)} AND substr({text}, 14, 1)"
            f" = ':' AND {_is_digit(text, 19)} AND (right({text}, 1) = 'Z' AND"
            f" {_is_digit(text, -2)} OR substr({text}, -6, 1) IN ('+', '-') AND"
            f" {_is_digit(text, -7)}) AND {_is_far_inside(raw)}"
        )
        pattern, offset = _MOMENT, _OFFSET
        zoned = _bounded(_with_offset(raw), raw)
        moment, local = (_bounded(one, raw) for one in (moment, local))
        typed = f"WHEN {is_moment_sql(raw)} THEN {moment} "
    return (
        f"(CASE {typed}WHEN {is_usual} THEN {usual_moment} "
        f"WHEN {raw} RLIKE {literal(_WHOLE_DAY)} THEN {local} "
        f"WHEN NOT coalesce({raw} RLIKE {literal(pattern)}, false) THEN NULL "
        f"WHEN {raw} RLIKE {literal(offset)} THEN {zoned} "
        f"ELSE {local} END)"
    )


def _with_offset(raw: str) -> str:
    """Return SQL for a moment with an offset: Spark reads none without seconds, and no `z`."""
    without_seconds = rf"^({_MINUTE[1:]})(\s*[A-Z+-])"
    text = f"regexp_replace(upper({raw}), {literal(without_seconds)}, '$1:00$2')"
    return f"try_cast({text} AS timestamp)"


def _bounded(value: str, raw: str) -> str:
    """Return SQL for a date or a moment that is NULL outside of the years 1 to 9999, which Python,
    and so what shows rows, does not know. An offset or a zone moves text of four digits there.
    """
    is_inside = f"{_is_far_inside(raw)} OR year({value}) BETWEEN 1 AND 9999"
    return f"(CASE WHEN {is_inside} THEN {value} END)"


def _is_far_inside(raw: str) -> str:
    """Return the predicate of text that begins with a year which no zone moves out of those that
    Python knows. Of text that begins otherwise, as with a space, it is not sure.
    """
    text = f"CAST({raw} AS string)"
    return f"{text} >= '0002' AND {text} < '9999'"


def _is_digit(text: str, at: int) -> str:
    return f"substr({text}, {at}, 1) BETWEEN '0' AND '9'"


def _starts_as_a_day(raw: str) -> str:
    return f"substr(trim({raw}), 5, 1) = '-' AND substr(trim({raw}), 8, 1) = '-'"
