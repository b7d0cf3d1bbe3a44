"""Columns of Arrow are searched: texts for every value, declared columns by comparing.

Arrays are not typed more closely: what they are is looked at.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehouse.privacy.verifier.column_values import column_texts
from lakehouse.privacy.verifier.search_state import FilePart
from lakehouse.privacy.verifier.sought_values import Sought

_COLUMN = "column"
_Path = Sequence[str]


class ColumnHit(NamedTuple):
    """A value of a person in a column."""

    column: str
    how: str
    sought: Sought
    position: int | None
    """Its place among the values; None where it has none of its own, as in a list."""
    rows: int = 1


def search_column(
    part: FilePart, path: _Path, values: Any, first_row: int | None, how: str = _COLUMN
) -> None:
    """Search the values of a column, and of the fields in it.

    :param first_row: the number of the first value's row; None where they are not those of
        rows.
    """
    for hit in column_hits(part, path, values, how):
        row = None if first_row is None or hit.position is None else first_row + hit.position
        part.found(hit.sought, hit.how, column=hit.column, row=row, count=hit.rows)


def column_hits(part: FilePart, path: _Path, values: Any, how: str) -> Iterator[ColumnHit]:
    """Yield the values of people in a column, and in the fields of it."""
    kind = values.type
    if isinstance(values, pa.ExtensionArray):
        yield from column_hits(part, path, values.storage, how)
    elif pa.types.is_dictionary(kind):
        yield from _dictionary_hits(part, path, values, how)
    elif pa.types.is_struct(kind):
        # `flatten`, unlike `field`, takes NULLs and slices of the whole along.
        for field, inner in zip(kind, values.flatten(), strict=True):
            yield from column_hits(part, [*path, field.name], inner, how)
    elif pa.types.is_map(kind):
        yield from _without_position(column_hits(part, [*path, "key"], values.keys, how))
        yield from _without_position(column_hits(part, [*path, "value"], values.items, how))
    elif _is_list(kind):
        yield from _without_position(column_hits(part, path, values.flatten(), how))
    elif not pa.types.is_null(kind):
        yield from _leaf_hits(part, path, values, how)


def _leaf_hits(part: FilePart, path: _Path, values: Any, how: str) -> Iterator[ColumnHit]:
    column = ".".join(path)
    if _is_text(values.type):
        for index, sought, encoding in _text_hits(part, values):
            yield ColumnHit(column, f"{_decoded(how)}{encoding}", sought, index)
    if part.compares(path):
        for index, sought in part.matches(path, column_texts(values)):
            yield ColumnHit(column, how, sought, index)
    elif pa.types.is_integer(values.type):
        for index, sought in _integer_hits(part, values):
            yield ColumnHit(column, f"{_decoded(how)}integer", sought, index)


def _dictionary_hits(part: FilePart, path: _Path, values: Any, how: str) -> Iterator[ColumnHit]:
    """Search the dictionary, which may have values that no row has, and find the rows of its
    hits.
    """
    hits = list(column_hits(part, path, values.dictionary, how))
    if not hits:
        return
    indices = values.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    for hit in hits:
        rows = np.flatnonzero(indices == hit.position)
        if len(rows):
            yield hit._replace(position=int(rows[0]), rows=len(rows))
        else:
            yield hit._replace(position=None, how=f"{hit.how}, only in the dictionary")


def _without_position(hits: Iterator[ColumnHit]) -> Iterator[ColumnHit]:
    for hit in hits:
        yield hit._replace(position=None)


def _text_hits(part: FilePart, values: Any) -> Iterator[tuple[int, Sought, str]]:
    """Search the buffer that the texts of a column stand in side by side."""
    search = part.state.search
    if search is None or not len(values):
        return
    large = values.cast(pa.large_binary())
    _, offsets, content = large.buffers()
    if content is None:
        return
    edges = np.frombuffer(offsets, np.int64)[large.offset : large.offset + len(large) + 1]
    begin, end = int(edges[0]), int(edges[-1])
    block = memoryview(content)[begin:end].tobytes()
    for index, hit in search.find_in_values(block, cast(Sequence[int], edges - begin)):
        assert hit.sought
        yield index, hit.sought, hit.encoding


def _integer_hits(part: FilePart, values: Any) -> Iterator[tuple[int, Sought]]:
    """Find integers that are long enough to be told from others, in whatever column."""
    integers = part.state.integers
    if not integers:
        return
    known = list(integers)
    wide = values.cast(pa.int64(), safe=False)
    indices = pc.index_in(wide, value_set=pa.array(known, pa.int64())).fill_null(-1)
    positions = indices.to_numpy(zero_copy_only=False)
    for at in np.flatnonzero(positions >= 0):
        yield int(at), integers[known[positions[at]]]


def _decoded(how: str) -> str:
    return "decoded " if how == _COLUMN else f"{how}, "


def _is_list(kind: pa.DataType) -> bool:
    return (
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
    )


def _is_text(kind: pa.DataType) -> bool:
    return (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )
