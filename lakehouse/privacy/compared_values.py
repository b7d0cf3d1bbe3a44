"""How ids and personal values in columns of tables are compared with those of people: exactly as
text, and in Arrow so far that few rows have to be looked at as text.
"""

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.erasure.arrow_ids import (
    Mask,
    Values,
    is_among,
    stripped,
    whole_numbers,
)
from lakehouse.iceberg.erasure.arrow_ids import may_be_ids as texts_may_be_ids
from lakehouse.privacy.table_reading import texts_in

if TYPE_CHECKING:
    import pyarrow as pa

_SAME_LETTERS = (("ς", "σ"), ("\u0307", ""))
"""What Python makes of `Σ` at the end of a word and of `İ` in lower case, and Arrow does not."""


def compared(text: str) -> str:
    """Return a personal value as it is compared: an address is the same in other capitals."""
    return text.strip().lower()


def telling_texts(value: Any) -> Iterator[str]:
    """Yield the texts of a personal value; blanks tell of nobody."""
    for text in texts_in(value):
        if text.strip():
            yield text


def may_be_ids(values: Values, wanted: Collection[str]) -> Mask:
    """Return of each value whether it may be one of some ids in any of its forms.

    :param values: of a column of any type.
    :param wanted: ids as `normal_id` returns them; the empty one stands for blanks.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_integer(values.type):
        numbers = pa.array(whole_numbers(wanted, "long"), pa.int64())
        return pc.is_in(values.cast(pa.int64()), value_set=numbers)
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.string())
    return texts_may_be_ids(values, wanted) if _is_text(values.type) else values.is_valid()


def may_be_values(values: Values, keys: Collection[str]) -> Mask:
    """Return of each value whether it may be one of some, whatever its capitals and the spaces
    around it.

    :param values: of a column of any type.
    :param keys: values as `compared` returns them.
    """
    import pyarrow as pa

    if not _is_text(values.type):
        return values.is_valid()
    if all(key.isascii() for key in keys):
        return is_among(_lower(values), keys)
    folded = _folded(pa.array(keys, values.type))
    return is_among(_folded(values), folded.to_pylist())


def _lower(text: Values) -> Values:
    import pyarrow.compute as pc

    return pc.utf8_lower(stripped(text))


def _folded(text: Values) -> Values:
    """Return texts in lower case, the same of any that are so to Python."""
    import pyarrow.compute as pc

    folded = _lower(text)
    for letter, same in _SAME_LETTERS:
        folded = pc.replace_substring(folded, letter, same)
    return folded


def _is_text(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
