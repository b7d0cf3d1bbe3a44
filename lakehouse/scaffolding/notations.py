"""The notations in which numbers and dates are written.

A notation writes each value in one way.
If one notation can have written all texts of a column, a cast makes no two of them equal.
"""

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import product

Notations = frozenset[str]
"""The notations that can have written a text."""
_ONES = str.maketrans("23456789", "1" * 8)


def shape_of(text: str) -> str:
    """Return a text of the same notations, of which there are few, so that they can be cached."""
    return re.sub("^([+-]?)1[01]{3,}", r"\g<1>1000", text.translate(_ONES))


def number_notations(text: str, mark: str) -> Notations:
    """Return the notations that can have written a number; each begins with its plus sign.

    :param mark: what precedes its decimals; a comma or a point before it separates thousands.
    """
    text = text.translate(str.maketrans(",.", ".,")) if mark == "," else text
    value, digits = Decimal(text.replace(",", "")), text.partition(".")[2]
    count, needed = len(digits), len(digits.rstrip("0"))
    scales = {f"{count}": count, "shortest": needed, "shortest, not 0": max(needed, 1)}
    scales |= {f"0 or {most}": most if needed else 0 for most in range(1, 10)}
    fitting = set()
    for sign, group, zero in product(("", "+"), ("", ","), ("0", "")):
        written = format(value, f"{sign}{group}.{count}f")
        if re.sub(r"^([+-]?)0[.]", rf"\g<1>{zero}.", written) == text and (
            value or "-" not in text
        ):
            fitting |= {
                f"{sign}{group}{zero} {name}" for name in scales if scales[name] == count
            }
    return frozenset(fitting)


@lru_cache(maxsize=1 << 14)
def date_notations(form: str, parts: Sequence[str], rest: str, offset: str) -> Notations:
    """Return the notations that can have written a date or a timestamp.

    :param form: which part comes first, and the sign between the parts.
    :param parts: the digits of day and month.
    :param rest: all that follows the date, without the offset.
    """
    hour, _, time = rest[1:].partition(":")
    if re.search(r"[.][0-9]{6}0*[1-9]", time):
        return frozenset()
    shape = f"{form}{rest[:1]}{re.sub('[0-9]', '9', time)}{offset}"
    return frozenset(
        f"{shape} {is_padded} {is_hour_padded}"
        for is_padded, is_hour_padded in product((False, True), repeat=2)
        if _can_be(parts, is_padded) and (not hour or _can_be([hour], is_hour_padded))
    )


def _can_be(parts: Iterable[str], is_padded: bool) -> bool:
    return all(len(part) == 2 if is_padded else not part[:-1].startswith("0") for part in parts)
