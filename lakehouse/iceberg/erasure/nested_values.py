"""Values inside of structs, arrays and maps, looked at leaf by leaf: in Arrow, and by Spark.

A personal column may hold several values in a row, such as the addresses of a contact: each of
them stands for a person by itself, as `texts_in` tells them apart where rows are looked for.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from lakehouse.iceberg.erasure.arrow_ids import Mask, Values, any_of
from lakehouse.tables.quoting import identifier

if TYPE_CHECKING:
    from pyiceberg.types import IcebergType, PrimitiveType

LeafTest = Callable[[Values], Mask]
"""Returns of each value of an array without parts whether it is one of those looked for."""
LeafSql = Callable[[str], str]
"""Returns SQL, which is never NULL, of whether a value is one of those looked for."""


def leaf_types(column_type: "IcebergType") -> "Iterator[PrimitiveType]":
    """Yield the types of the values that stand in a column: its own, or those of its parts."""
    from pyiceberg.types import ListType, MapType, PrimitiveType, StructType

    if isinstance(column_type, PrimitiveType):
        yield column_type
    elif isinstance(column_type, StructType):
        for field in column_type.fields:
            yield from leaf_types(field.field_type)
    elif isinstance(column_type, ListType):
        yield from leaf_types(column_type.element_type)
    elif isinstance(column_type, MapType):
        yield from leaf_types(column_type.key_type)
        yield from leaf_types(column_type.value_type)


def any_leaf(values: Values, test: LeafTest) -> Mask:
    """Return of each value of a column of Arrow whether one of its leaves passes a test."""
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray):
        masks = [any_leaf(chunk, test) for chunk in values.chunks]
        return pa.chunked_array(masks, pa.bool_())
    kind = values.type
    if pa.types.is_struct(kind):
        # `flatten`, unlike `field`, takes NULLs and slices of the whole along.
        fields = [any_leaf(field, test) for field in values.flatten()]
        return any_of(fields) if fields else test(pa.nulls(len(values)))
    if pa.types.is_map(kind):
        inner = any_of([any_leaf(values.keys, test), any_leaf(values.items, test)])
        return _of_parents(values, inner)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _of_parents(values, any_leaf(values.values, test))
    return test(values)


def _of_parents(parents: Values, of_parts: Mask) -> Mask:
    """Return of each array or map whether it is valid and a mask of the parts of all holds for one
    of its own.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    # Offsets count from the first of all parts, also where the parents are a slice.
    offsets = parents.offsets.to_numpy(zero_copy_only=False)
    passed = pc.fill_null(of_parts, False).to_numpy(zero_copy_only=False)
    before = np.concatenate([[0], np.cumsum(passed, dtype=np.int64)])
    has_passed = before[offsets[1:]] > before[offsets[:-1]]
    return pc.and_(pa.array(has_passed), parents.is_valid())


def any_leaf_sql(value: str, column_type: "IcebergType", test: LeafSql) -> str:
    """Return SQL, which is never NULL, of whether one of the leaves of a value passes a test.

    :param value: SQL of the value.
    """
    return _any_leaf_sql(value, column_type, test, depth=0)


def _any_leaf_sql(value: str, column_type: "IcebergType", test: LeafSql, depth: int) -> str:
    from pyiceberg.types import ListType, MapType, StructType

    if isinstance(column_type, StructType):
        terms = [
            _any_leaf_sql(f"{value}.{identifier(field.name)}", field.field_type, test, depth)
            for field in column_type.fields
        ]
        return f"({' OR '.join(terms) or 'false'})"
    if isinstance(column_type, ListType):
        return _exists(value, column_type.element_type, test, depth)
    if isinstance(column_type, MapType):
        keys = _exists(f"map_keys({value})", column_type.key_type, test, depth)
        values = _exists(f"map_values({value})", column_type.value_type, test, depth)
        return f"({keys} OR {values})"
    return test(value)


def _exists(array: str, part_type: "IcebergType", test: LeafSql, depth: int) -> str:
    # Each depth has a name of its own: an inner one would hide an outer one.
    part = f"__part{depth}"
    passes = _any_leaf_sql(part, part_type, test, depth + 1)
    return f"coalesce(exists({array}, {part} -> {passes}), false)"
