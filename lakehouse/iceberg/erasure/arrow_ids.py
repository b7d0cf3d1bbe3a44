"""Ids and other values of people compared in columns of Arrow, the same as `normal_id` of Python;
and what of it leaves files out by their statistics.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import reduce
from typing import Any

from lakehouse.tables.person import INTEGER

_ABOVE = {"int": 2**31, "long": 2**63}
INTEGERS = tuple(_ABOVE)
"""The types of whole numbers, as Iceberg names them."""
Mask = Any
"""A boolean array of Arrow, whole or in chunks, with a value for each row."""
Values = Any
"""A column of Arrow, whole or in chunks."""


def text_of(value: Any) -> str | None:
    """Return a value as Spark casts it to a string; None of NULL, and of what has parts."""
    if value is None or isinstance(value, Mapping | list):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ")
    if isinstance(value, float) and value.is_integer():
        return f"{value:.1f}"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def normal_ids(text: Values) -> Values:
    """Return delivered ids as `normal_id` does."""
    import pyarrow.compute as pc

    return pc.replace_substring_regex(stripped(text), pattern=INTEGER, replacement=r"\1\2")


def is_id_among(text: Values, wanted: Collection[str]) -> Mask:
    """Return of each text whether it is one of some ids, in whatever form; of none at all it is
    False.

    :param wanted: ids as `normal_id` returns them.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(text, pa.ChunkedArray):
        masks = [is_id_among(chunk, wanted) for chunk in text.chunks]
        return pa.chunked_array(masks, pa.bool_())
    may_be = may_be_ids(text, wanted)
    is_one = is_among(normal_ids(text.filter(may_be)), wanted)
    return pc.replace_with_mask(may_be, may_be, is_one)


def may_be_ids(text: Values, wanted: Collection[str]) -> Mask:
    """Return of each text whether it may be one of some ids: whoever is one is among these few,
    and of millions no others have to be looked at closely.

    :param wanted: ids as `normal_id` returns them.
    """
    import pyarrow.compute as pc

    # What is left of an id without what its forms may have in front and behind.
    bare = pc.utf8_rtrim(pc.utf8_ltrim(stripped(text), characters="+-0"), characters=".0")
    return is_among(bare, {one.lstrip("+-0").rstrip(".0") for one in wanted})


def stripped(text: Values) -> Values:
    """Return texts without spaces around them, of all that Unicode has."""
    import pyarrow.compute as pc

    return pc.utf8_trim_whitespace(text)


def is_blank(text: Values) -> Mask:
    """Return of each text whether nothing stands in it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_empty = pc.equal(stripped(text), pa.scalar("", text.type))
    return pc.fill_null(is_empty, True)


def is_among(text: Values, wanted: Collection[str]) -> Mask:
    """Return of each text whether it is one of some."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.is_in(text, value_set=pa.array(sorted(wanted), text.type))


def any_of(masks: Sequence[Mask]) -> Mask:
    """Return of each row whether one of some masks, at least one, holds."""
    import pyarrow.compute as pc

    return reduce(lambda left, right: pc.or_(left, right), masks)


def all_of(masks: Sequence[Mask]) -> Mask:
    """Return of each row whether all of some masks, at least one, hold."""
    import pyarrow.compute as pc

    return reduce(lambda left, right: pc.and_(left, right), masks)


def whole_numbers(texts: Iterable[str], kind: str) -> list[int]:
    """Return the numbers that a column of whole numbers has for some texts, as Spark casts
    them to a string; sorted, each once.

    :param kind: one of `INTEGERS`.
    """
    numbers = {int(text) for text in texts if _is_integer(text)}
    return sorted(number for number in numbers if -_ABOVE[kind] <= number < _ABOVE[kind])


def _is_integer(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdigit() and str(int(text)) == text
