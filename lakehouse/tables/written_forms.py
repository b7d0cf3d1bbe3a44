"""SQL that brings delivered text into the form that casts read: dates that are not written
`2026-12-31`, and numbers with a decimal comma or grouped digits.

A value of another form stays as it is, so that a cast reads or refuses it by itself.
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
# What begins with 0, such as 0.500, has no thousands.
_GROUPED_COMMA = r"^\s*[+-]?([1-9][0-9]{0,2}([.][0-9]{3})+|[0-9]*)(,[0-9]+)?\s*$"
_GROUPED_POINT = r"^\s*[+-]?([1-9][0-9]{0,2}(,[0-9]{3})+|[0-9]*)([.][0-9]+)?\s*$"


def iso_date(raw: str, *forms: str) -> str:
    """Return SQL for a delivered date or moment with its day as `2026-12-31`.

    :param raw: SQL of the delivered value.
    :param forms: how days are written, such as `D.M.Y`, `M/D/Y`, `Y/M/D` or `YMD`; digits of
        days and months may lack a leading zero where a sign is between them. Of two forms with
        the same sign only one can be meant.
    :raises DeclarationError: names a form that cannot be read, or two that cannot be told apart.
    """
    shapes = [_shape(form) for form in forms]
    twice = sorted(
        {form for form, shape in zip(forms, shapes, strict=True) if shapes.count(shape) > 1}
    )
    if twice:
        raise DeclarationError(
            f"iso_date({raw!r}) has {', '.join(twice)}, which cannot be told apart; expected one"
            " order for each sign."
        )
    for form in forms:
        raw = _with_iso_day(raw, form)
    return raw


def decimal_comma(raw: str, *, grouped: bool = False) -> str:
    """Return SQL for a delivered number with a decimal point in place of its comma.

    :param raw: SQL of the delivered value.
    :param grouped: whether points stand between thousands, as in `1.234,50`; `1.234` is then
        a thousand and more. Else it stays as it is, a little over one.
    """
    if not grouped:
        return f"regexp_replace({raw}, {literal(_COMMA)}, '$1.$2')"
    return f"if({raw} RLIKE {literal(_GROUPED_COMMA)}, translate({raw}, ',.', '.'), {raw})"


def grouped_by_commas(raw: str) -> str:
    """Return SQL for a delivered number such as `1,234.50` without the commas.

    :param raw: SQL of the delivered value.
    """
    return f"if({raw} RLIKE {literal(_GROUPED_POINT)}, replace({raw}, ',', ''), {raw})"


def whole_number(raw: str) -> str:
    """Return SQL for a delivered whole number such as `17.0` without its point.

    :param raw: SQL of the delivered value.
    """
    return f"regexp_replace({raw}, {literal(_POINTED)}, '$1')"


def epoch_milliseconds(raw: str) -> str:
    """Return SQL for delivered milliseconds since 1970, of 12 or 13 digits, as a timestamp in UTC.

    :param raw: SQL of the delivered value.
    """
    text = (
        f"date_format(timestamp_millis(try_cast({raw} AS bigint)), {literal(_ISO_TIMESTAMP)})"
    )
    return f"if({raw} RLIKE {literal(_MILLISECONDS)}, {text}, {raw})"


def blank_as_null(raw: str, *words: str) -> str:
    """Return SQL for a delivered value, that is NULL where nothing but spaces stands.

    :param raw: SQL of the delivered value.
    :param words: what else says that there is no value, such as `NA`.
    """
    is_blank = f"{raw} RLIKE {literal(_BLANK)}"
    is_word = f" OR trim({raw}) IN {literals(words)}" if words else ""
    return f"if({is_blank}{is_word}, NULL, {raw})"


def _shape(form: str) -> tuple[str, bool]:
    """Return what of a form can be seen in a value: its sign, and whether the year is first."""
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
    # A longer number is no date.
    end = "(?![0-9])"
    return f"regexp_replace({raw}, {literal(_SPACE + joined + end)}, {literal(groups)})"
