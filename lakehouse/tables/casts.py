"""Strict casts of delivered text: values that Spark would round or guess are rejected.

Spark's own cast reads `2024` as the first of January, and rounds `1.005` to fit a decimal.
Other notations, such as `1.204,00`, are normalized by `number_and_date_forms` before.
`read_moment` in `lakehouse.ingestion.suppressed_rows` reads the same timestamps in Python.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from lakehouse.tables.quoting import literal
from lakehouse.tables.types import WIDEST

_DECIMAL = re.compile(r"^decimal\((\d+),\s*(\d+)\)$")
_DAY = r"^\s*[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_FULL_DATE = rf"{_DAY}\s*$"
_MINUTE = rf"{_DAY}[T ][0-9]{{1,2}}:[0-9]{{2}}"
_OFFSET = r"([Zz]|UTC|GMT|(UTC|GMT)?[+-][0-9]{2}(:?[0-9]{2})?)\s*$"
_TIMESTAMP = rf"{_MINUTE}(:[0-9]{{2}}([.][0-9]+)?)?\s*({_OFFSET[:-1]})?$"
"""A timestamp with or without an offset; the meaning of a zone name can change by law."""
_FITS_FLOAT = 38
"""Digits of a number that always fits `float`, and therefore `double`."""
# Java strips all of these characters at both ends.
_NUMBER = r"^[\x00-\x20]*[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?[\x00-\x20]*$"
_NO_NUMBER = r"(?i)^[\x00-\x20]*[+-]?(nan|inf|infinity)[\x00-\x20]*$"


@dataclass(frozen=True)
class Cast:
    """How delivered text is cast to a type.

    `time_zone` is the zone of timestamps without an offset.
    """

    type: str
    time_zone: str = "UTC"

    def sql(self, raw: str) -> str:
        """Return SQL that casts a delivered value; see `cast_sql`."""
        return cast_sql(raw, self.type, self.time_zone)


def to_timestamp(text: str) -> datetime:
    """Parse a timestamp in Python; without an offset it is in UTC, as in a cast.

    :raises ValueError: if the text is not a timestamp.
    """
    timestamp = datetime.fromisoformat(text)
    return timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)


def is_timestamp_sql(raw: str) -> str:
    """Return the predicate that a value is a `timestamp` and needs no time zone.

    Spark evaluates it before reading rows.
    """
    return f"typeof({raw}) = 'timestamp'"


def cast_sql(raw: str, to: str, time_zone: str = "UTC") -> str:
    """Return SQL that casts a delivered value; NULL if it cannot be cast without loss.

    :param raw: SQL of the delivered value.
    :param to: the type in Spark's notation.
    :param time_zone: the zone of timestamps without an offset, and of the dates of timestamps.
    """
    decimal = _DECIMAL.match(to)
    if decimal:
        return _decimal(raw, to, int(decimal[1]) - int(decimal[2]), int(decimal[2]))
    if to == "date":
        return _date(raw, time_zone)
    if to == "timestamp":
        return _timestamp(raw, time_zone)
    if to == "timestamp_ntz":
        return _wall_time(raw)
    if to in ("double", "float"):
        return _floating(raw, to)
    return f"try_cast({raw} AS {to})"


def _floating(raw: str, to: str) -> str:
    """Reject Java literals such as `15F`, `12D` and `0x1p3`, and numbers that overflow to
    infinity. Words for infinity and NaN are accepted, as in Spark.

    Short text without these letters is recognized without a regular expression.
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
    """Accept a date, or a timestamp without an offset: Spark would drop an offset silently."""
    text = f"CAST({raw} AS string)"
    timestamp = _bounded(f"try_cast({raw} AS timestamp_ntz)", raw)
    return (
        f"(CASE WHEN {_is_no_text(raw)} OR {text} RLIKE {literal(_FULL_DATE)} OR "
        f"{text} RLIKE {literal(_TIMESTAMP)} AND NOT {text} RLIKE {literal(_OFFSET)} "
        f"THEN {timestamp} END)"
    )


def _is_no_text(raw: str) -> str:
    """Return the predicate of a value that is not text; Spark evaluates it before reading rows."""
    return f"typeof({raw}) <> 'string'"


def _decimal(raw: str, to: str, integer_digits: int, scale: int) -> str:
    """Reject numbers with more decimal places than the type, which would be rounded. Java
    accepts any digits.

    Text without an exponent and with few decimal places is recognized without a regular
    expression, which would take most of a load's time.
    """
    text, cast = f"CAST({raw} AS string)", f"try_cast({raw} AS {to})"
    is_usual = (
        f"octet_length({text}) = length({text})"
        f" AND NOT contains({text}, 'e') AND NOT contains({text}, 'E')"
        f" AND (instr({text}, '.') = 0 OR length({text}) - instr({text}, '.') <= {scale})"
    )
    is_plain = rf"^\s*[+-]?[0-9]*([.][0-9]{{0,{scale}}}0*)?\s*$"
    return (
        f"(CASE WHEN {is_usual} THEN {cast} WHEN {text} RLIKE {literal(is_plain)} THEN {cast} "
        f"WHEN {_exponential(raw, cast, integer_digits, scale)} THEN {cast} END)"
    )


def _exponential(raw: str, cast: str, integer_digits: int, scale: int) -> str:
    """Return the predicate of a number with an exponent that fits exactly."""
    widest = max(WIDEST - integer_digits, scale)
    # One digit of a negative exponent moves the decimal point by at most nine places.
    exponent, decimals = (
        (r"([+]?[0-9]{1,2}|-[0-9])", widest - 9) if widest >= 9 else (r"[+]?[0-9]{1,2}", widest)
    )
    is_bounded = rf"^\s*[+-]?[0-9]*([.][0-9]{{0,{decimals}}})?[eE]{exponent}\s*$"
    exact = f"try_cast({raw} AS decimal({WIDEST},{widest}))"
    return f"CAST({raw} AS string) RLIKE {literal(is_bounded)} AND {cast} = {exact}"


def _date(raw: str, time_zone: str) -> str:
    """Accept a date, or the local date of a timestamp; a date in its usual form skips further
    checks. A `timestamp` value is handled first: as text it would lose its offset.
    """
    timestamp, day = f"try_cast({raw} AS timestamp)", f"try_cast({raw} AS date)"

    def local_day(value: str) -> str:
        local = f"CAST(from_utc_timestamp({value}, {literal(time_zone)}) AS date)"
        return _bounded(local, raw)

    is_usual = (
        f"length(trim({raw})) = 10 AND {_starts_as_a_day(raw)} AND {_is_far_inside(raw)}"
        f" AND {_is_digit(f'trim({raw})', -1)}"
    )
    utc_day = _bounded(f"CAST({timestamp} AS date)", raw)
    return (
        f"(CASE WHEN {is_timestamp_sql(raw)} THEN {local_day(timestamp)}"
        f" WHEN {is_usual} THEN {day}"
        f" WHEN {raw} RLIKE {literal(_FULL_DATE)} THEN {_bounded(day, raw)}"
        f" WHEN NOT coalesce({raw} RLIKE {literal(_TIMESTAMP)}, false) THEN NULL"
        f" WHEN {raw} RLIKE {literal(_OFFSET)} THEN {local_day(_with_offset(raw))}"
        f" ELSE {utc_day} END)"
    )


def _timestamp(raw: str, time_zone: str) -> str:
    """Accept a date or a timestamp, converted to UTC if it has an offset. Spark alone would
    read a time of day as today.

    A timestamp in its usual form is recognized without a regular expression, which would take
    most of a load's time. Spark also accepts one digit for seconds, and names of zones.
    """
    text, usual = f"trim({raw})", f"try_cast({raw} AS timestamp)"
    is_usual = (
        f"substr({text}, 17, 1) = ':' AND {_starts_as_a_day(raw)} AND substr({text}, 14, 1)"
        f" = ':' AND {_is_digit(text, 19)} AND (right({text}, 1) = 'Z' AND"
        f" {_is_digit(text, -2)} OR substr({text}, -6, 1) IN ('+', '-') AND"
        f" {_is_digit(text, -7)}) AND {_is_far_inside(raw)}"
    )
    local = _bounded(f"to_utc_timestamp({usual}, {literal(time_zone)})", raw)
    return (
        f"(CASE WHEN {is_timestamp_sql(raw)} THEN {_bounded(usual, raw)} "
        f"WHEN {is_usual} THEN {usual} "
        f"WHEN {raw} RLIKE {literal(_FULL_DATE)} THEN {local} "
        f"WHEN NOT coalesce({raw} RLIKE {literal(_TIMESTAMP)}, false) THEN NULL "
        f"WHEN {raw} RLIKE {literal(_OFFSET)} THEN {_bounded(_with_offset(raw), raw)} "
        f"ELSE {local} END)"
    )


def _with_offset(raw: str) -> str:
    """Return SQL for a timestamp with an offset, also without seconds or with `z`."""
    without_seconds = rf"^({_MINUTE[1:]})(\s*[A-Z+-])"
    text = f"regexp_replace(upper({raw}), {literal(without_seconds)}, '$1:00$2')"
    return f"try_cast({text} AS timestamp)"


def _bounded(value: str, raw: str) -> str:
    """Return SQL that is NULL for dates and timestamps outside of the years 1 to 9999, which
    Python cannot represent. Four-digit text can leave that range through an offset or a zone.
    """
    is_inside = f"{_is_far_inside(raw)} OR year({value}) BETWEEN 1 AND 9999"
    return f"(CASE WHEN {is_inside} THEN {value} END)"


def _is_far_inside(raw: str) -> str:
    """Return the predicate of text that starts with a year that no zone can move out of
    Python's range. It is false for some valid text, such as with a leading space.
    """
    text = f"CAST({raw} AS string)"
    return f"{text} >= '0002' AND {text} < '9999'"


def _is_digit(text: str, at: int) -> str:
    return f"substr({text}, {at}, 1) BETWEEN '0' AND '9'"


def _starts_as_a_day(raw: str) -> str:
    return f"substr(trim({raw}), 5, 1) = '-' AND substr(trim({raw}), 8, 1) = '-'"
