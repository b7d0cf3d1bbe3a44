"""Compares ids and personal values in Arrow columns of any type, as `normal_id` does in Python."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any

from lakehouse.tables.person import INTEGER, folded, normal_id

if TYPE_CHECKING:
    import pyarrow as pa

Mask = Any
"""A boolean Arrow array with a value per row."""
Values = Any
"""An Arrow column, chunked or not."""
_INT64_END = 2**63
_INTEGER_TEXT = re.compile("-?[0-9]+")


def text_of(value: Any) -> str | None:
    """Return a value as Spark casts it to a string; None for NULL and nested values."""
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


def texts_in(value: Any) -> Iterator[str]:
    """Yield the non-blank texts of a value, or of all elements of a nested value."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for element in value:
            yield from texts_in(element)
        return
    text = text_of(value)
    if text is not None and text.strip():
        yield text


def match_ids(values: Values, ids: Collection[str]) -> Mask:
    """Return which rows contain one of some ids, in any form.

    :param ids: ids from `normal_id`.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if _is_text(values.type):
        return is_id_among(values, ids)
    if pa.types.is_integer(values.type):
        numbers = pa.array(_integers(ids), pa.int64())
        return pc.is_in(values.cast(pa.int64()), value_set=numbers)
    return _test_each(values, lambda text: normal_id(text) in ids)


def match_values(values: Values, keys: Collection[str]) -> Mask:
    """Return which rows contain one of some personal values, in any case.

    :param keys: values from `folded`.
    """
    import pyarrow.compute as pc

    if _is_text(values.type):
        # The stubs lack it.
        normal: Values = pc.utf8_normalize(stripped(values), "NFC")  # type: ignore[attr-defined]
        return equals_any(pc.utf8_lower(normal), keys)
    return _test_each(values, lambda text: folded(text) in keys)


def is_blank(values: Values) -> Mask:
    """Return which rows contain no text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if _is_text(values.type):
        is_empty = pc.equal(stripped(values), pa.scalar("", values.type))
        return pc.fill_null(is_empty, True)
    if pa.types.is_nested(values.type):
        return pc.invert(_test_each(values, lambda _: True))
    return values.is_null()


def is_id_among(text: Values, ids: Collection[str]) -> Mask:
    """Return which texts are one of some ids, in any form; False for NULL.

    :param ids: ids from `normal_id`.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(text, pa.ChunkedArray):
        masks = [is_id_among(chunk, ids) for chunk in text.chunks]
        return pa.chunked_array(masks, pa.bool_())
    # Regular expressions are slow: only candidates are normalized.
    bare = pc.utf8_rtrim(pc.utf8_ltrim(stripped(text), characters="+-0"), characters=".0")
    candidates = equals_any(bare, {one.lstrip("+-0").rstrip(".0") for one in ids})
    matches = equals_any(normal_ids(text.filter(candidates)), ids)
    return pc.replace_with_mask(candidates, candidates, matches)


def normal_ids(text: Values) -> Values:
    """Return ids as `normal_id` does."""
    import pyarrow.compute as pc

    return pc.replace_substring_regex(stripped(text), pattern=INTEGER, replacement=r"\1\2")


def stripped(text: Values) -> Values:
    """Return texts without surrounding Unicode spaces."""
    import pyarrow.compute as pc

    return pc.utf8_trim_whitespace(text)


def equals_any(text: Values, texts: Collection[str]) -> Mask:
    """Return which texts equal one of some."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.is_in(text, value_set=pa.array(sorted(texts), text.type))


def any_of(masks: Sequence[Mask]) -> Mask:
    """Return in which rows any of at least one mask is true."""
    import pyarrow.compute as pc

    return reduce(lambda left, right: pc.or_(left, right), masks)


def all_of(masks: Sequence[Mask]) -> Mask:
    """Return in which rows all of at least one mask are true."""
    import pyarrow.compute as pc

    return reduce(lambda left, right: pc.and_(left, right), masks)


def _is_text(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _test_each(values: Values, test: Callable[[str], bool]) -> Mask:
    """Test the texts of each row in Python, for types without an Arrow comparison."""
    import pyarrow as pa

    matches = [any(map(test, texts_in(value))) for value in values.to_pylist()]
    return pa.array(matches, pa.bool_())


def _integers(texts: Collection[str]) -> list[int]:
    numbers = {int(text) for text in texts if _INTEGER_TEXT.fullmatch(text)}
    return sorted(number for number in numbers if -_INT64_END <= number < _INT64_END)
