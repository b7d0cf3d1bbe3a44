"""Lossless type promotion, and the leaf fields of nested types."""

from collections.abc import Iterator

from lakehouse.tables.types import INTEGER_TYPES, Array, ColumnType, Decimal, Map, Struct

_WIDER = {"int": "bigint", "float": "double"}
_CERTAIN_DIGITS = {"int": 9, "bigint": 18}
"""Digits of which the type represents every number."""


def is_wider(want: ColumnType, have: ColumnType) -> bool:
    """Return whether `want` can represent all values of `have`, and Iceberg can promote files."""
    if isinstance(want, Decimal) and isinstance(have, Decimal):
        return want.scale == have.scale and want.precision > have.precision
    return _WIDER.get(str(have)) == str(want)


def is_exact(column_type: ColumnType) -> bool:
    """Return whether a type is an integer or a decimal."""
    return isinstance(column_type, Decimal) or str(column_type) in INTEGER_TYPES


def always_fits(want: ColumnType, have: ColumnType) -> bool:
    """Return whether `want` can represent all values of `have`, for two exact types."""
    have_scale = have.scale if isinstance(have, Decimal) else 0
    digits = have.precision if isinstance(have, Decimal) else _CERTAIN_DIGITS[str(have)] + 1
    if isinstance(want, Decimal):
        return want.scale >= have_scale and want.precision - want.scale >= digits - have_scale
    return not have_scale and digits <= _CERTAIN_DIGITS[str(want)]


def why_not_wider(want: ColumnType, have: ColumnType) -> str:
    """Return a sentence that explains why a column of type `have` cannot become `want`."""
    if isinstance(want, Decimal) and isinstance(have, Decimal) and want.scale != have.scale:
        return "Iceberg cannot change the scale of a decimal."
    if is_wider(have, want):
        return "narrowing would lose values."
    return (
        "Iceberg only widens: int to bigint, float to double, a decimal to more digits of the"
        " same scale."
    )


def leaf_paths(column_type: ColumnType, path: str) -> Iterator[str]:
    """Yield the dotted paths of a column's leaf fields, in Iceberg's notation."""
    if isinstance(column_type, Struct):
        for part in column_type.fields:
            yield from leaf_paths(part.type, f"{path}.{part.name}")
    elif isinstance(column_type, Array):
        yield from leaf_paths(column_type.element, f"{path}.element")
    elif isinstance(column_type, Map):
        yield from leaf_paths(column_type.key, f"{path}.key")
        yield from leaf_paths(column_type.value, f"{path}.value")
    else:
        yield path
