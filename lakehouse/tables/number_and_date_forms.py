"""SQL that normalizes delivered text before a cast: dates that are not written as `2026-12-31`,
and numbers with a decimal comma or grouped digits.

A value in another form is unchanged, so that the cast accepts or rejects it.
"""

import re

from lakehouse.errors import DeclarationError
from lakehouse.tables.quoting import literal, literals

_DATE_FORM = re.compile(
    r"(?P<first>Y|M|D)(?P<sign>[-./]?)(?P<second>Y|M|D)(?P=sign)(?P<third>Y|M|D)"
)
_SIGNED = {"Y": "([0-9]{4})", "M": "([0-9]{1,2})", "D": "([0-9]{1,2})"}
_UNSIGNED = {"Y": "([0-9]{4})", "M": "([0-9]{2})", "D": "([0-9]{2})"}
_ISO_TIMESTAMP = "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"
_POINTED = r"^\s*([+-]?[0-9]+)[.]0*\s*$"
_MILLISECONDS = r"^\s*[0-9]{12,13}\s*$"
_SPACE = r"^\s*"
_BLANK = r"^[\s\p{Z}]*$"
_COMMA = r"^\s*([+-]?[0-9]*),([0-9]+)\s*$"
# Numbers that start with 0, such as 0.500, have no thousands separator.
_GROUPED_COMMA = r"^\s*[+-]?([1-9][0-9]{0,2}([.][0-9]{3})+|[0-9]*)(,[0-9]+)?\s*$"
_GROUPED_POINT = r"^\s*[+-]?([1-9][0-9]{0,2}(,[0-9]{3})+|[0-9]*)([.][0-9]+)?\s*$"


def iso_date(raw: str, *forms: str) -> str:
    """Return SQL that rewrites the day of a delivered date or timestamp as `2026-12-31`.

    :param raw: SQL of the delivered value.
    :param forms: the accepted date formats, such as `D.M.Y`, `M/D/Y`, `Y/M/D` or `YMD`. With
        separators, days and months may lack a leading zero. Each separator can have only one
        order.
    :raises DeclarationError: states an invalid format, or two ambiguous ones.
    """
    shapes = [_shape(form) for form in forms]
    twice = sorted(
        {form for form, shape in zip(forms, shapes, strict=True) if shapes.count(shape) > 1}
    )
    if twice:
        raise DeclarationError(
            f"iso_date({raw!r}) has {', '.join(twice)}, which are ambiguous; expected one order for"
            " each separator."
        )
    for form in forms:
        raw = _with_iso_day(raw, form)
    return raw


def decimal_comma(raw: str, *, grouped: bool = False) -> str:
    """Return SQL that replaces the decimal comma of a delivered number with a point.

    :param raw: SQL of the delivered value.
    :param grouped: whether points separate thousands, as in `1.234,50`; then `1.234` is 1234.
        Otherwise it is unchanged.
    """
    if not grouped:
        return f"regexp_replace({raw}, {literal(_COMMA)}, '$1.$2')"
    return f"if({raw} RLIKE {literal(_GROUPED_COMMA)}, translate({raw}, ',.', '.'), {raw})"


def grouped_by_commas(raw: str) -> str:
    """Return SQL that removes the commas of a delivered number such as `1,234.50`.

    :param raw: SQL of the delivered value.
    """
    return f"if({raw} RLIKE {literal(_GROUPED_POINT)}, replace({raw}, ',', ''), {raw})"


def whole_number(raw: str) -> str:
    """Return SQL that removes the zero fraction of a delivered integer such as `17.0`.

    :param raw: SQL of the delivered value.
    """
    return f"regexp_replace({raw}, {literal(_POINTED)}, '$1')"


def epoch_milliseconds(raw: str) -> str:
    """Return SQL that converts delivered milliseconds since 1970, with 12 or 13 digits, to a
    timestamp in UTC.

    :param raw: SQL of the delivered value.
    """
    text = (
        f"date_format(timestamp_millis(try_cast({raw} AS bigint)), {literal(_ISO_TIMESTAMP)})"
    )
    return f"if({raw} RLIKE {literal(_MILLISECONDS)}, {text}, {raw})"


def blank_as_null(raw: str, *words: str) -> str:
    """Return SQL that replaces blank text with NULL.

    :param raw: SQL of the delivered value.
    :param words: other texts that mean NULL, such as `NA`.
    """
    is_blank = f"{raw} RLIKE {literal(_BLANK)}"
    is_word = f" OR trim({raw}) IN {literals(words)}" if words else ""
    return f"if({is_blank}{is_word}, NULL, {raw})"


def _shape(form: str) -> tuple[str, bool]:
    """Return the separator of a format, and whether the year is first."""
    match = _parsed(form)
    return match["sign"], match["first"] == "Y"


def _parsed(form: str) -> re.Match[str]:
    match = _DATE_FORM.fullmatch(form)
    if match is None or {match["first"], match["second"], match["third"]} != {*"YMD"}:
        raise DeclarationError(
            f"{form!r} is no form of a date; expected Y, M and D in their order with one of"
            " - . / between them, such as D.M.Y, or none, as in YMD."
        )
    return match


def _with_iso_day(raw: str, form: str) -> str:
    match = _parsed(form)
    parts = [match["first"], match["second"], match["third"]]
    sign = match["sign"]
    patterns = _SIGNED if sign else _UNSIGNED
    joined = (f"[{sign}]" if sign else "").join(patterns[part] for part in parts)
    groups = "-".join(f"${parts.index(part) + 1}" for part in "YMD")
    # A longer number is not a date.
    end = "(?![0-9])"
    return f"regexp_replace({raw}, {literal(_SPACE + joined + end)}, {literal(groups)})"
