"""Matching columns of two snapshots of a table, by field id, with their current names."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.column_types import column_type
from lakehouse.tables.quoting import identifier, literal
from lakehouse.tables.type_promotion import is_wider
from lakehouse.tables.types import ColumnType

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.types import IcebergType, NestedField, StructType


@dataclass(frozen=True)
class SharedColumn:
    """A column of either snapshot, with the SQL to read it from each, in the wider of its two
    types.

    A column or nested field that a snapshot lacks is NULL there.
    """

    name: str
    type: ColumnType
    before: str
    after: str


def shared_columns(
    current: "Schema", before: "Schema", after: "Schema"
) -> tuple[SharedColumn, ...]:
    """Return the columns of two schemas: current columns in order, then dropped ones.

    A dropped column keeps its last name, with the suffix `_dropped` if another column has that
    name.
    """
    earlier = {field.field_id: field for field in before.fields}
    later = {field.field_id: field for field in after.fields}
    # In the order of the later schema, with the last name of each column.
    last = later | earlier | later
    names = {field.field_id: field.name for field in current.fields if field.field_id in last}
    for field_id, field in last.items():
        if field_id not in names:
            names[field_id] = _free_name(field.name, names.values())
    return tuple(
        _shared_column(name, earlier.get(field_id), later.get(field_id))
        for field_id, name in names.items()
    )


def _free_name(name: str, existing_names: Iterable[str]) -> str:
    lowered = {other.lower() for other in existing_names}
    while name.lower() in lowered:
        name += "_dropped"
    return name


def _shared_column(
    name: str, before: "NestedField | None", after: "NestedField | None"
) -> SharedColumn:
    present = [field for field in (after, before) if field is not None]
    merged = _merge(present[0].field_type, present[-1].field_type)
    return SharedColumn(
        name, column_type(merged), _read_sql(before, merged), _read_sql(after, merged)
    )


def _read_sql(
    field: "NestedField | None", merged: "IcebergType", prefix: str = "", depth: int = 0
) -> str:
    """Return SQL that reads a column, or a field of the struct in `prefix`."""
    if field is None:
        return f"CAST(NULL AS {column_type(merged)})"
    return _conform(f"{prefix}{identifier(field.name)}", field.field_type, merged, depth)


def _merge(left: "IcebergType", right: "IcebergType") -> "IcebergType":
    """Return the type for the values of both; fields that only `right` has come last."""
    from pyiceberg.types import ListType, MapType, StructType

    if isinstance(left, StructType) and isinstance(right, StructType):
        return _merge_structs(left, right)
    if isinstance(left, ListType) and isinstance(right, ListType):
        element = _merge(left.element_type, right.element_type)
        return ListType(left.element_id, element, element_required=False)
    if isinstance(left, MapType) and isinstance(right, MapType):
        key = _merge(left.key_type, right.key_type)
        value = _merge(left.value_type, right.value_type)
        return MapType(left.key_id, key, left.value_id, value, value_required=False)
    return right if is_wider(column_type(right), column_type(left)) else left


def _merge_structs(left: "StructType", right: "StructType") -> "StructType":
    from pyiceberg.types import StructType

    only_right = {field.field_id: field for field in right.fields}
    fields = []
    for field in left.fields:
        same = only_right.pop(field.field_id, field)
        merged = _merge(field.field_type, same.field_type)
        fields.append(field.model_copy(update={"field_type": merged}))
    for field in only_right.values():
        name = _free_name(field.name, [other.name for other in fields])
        fields.append(field.model_copy(update={"name": name}))
    return StructType(*fields)


def _conform(sql: str, present: "IcebergType", merged: "IcebergType", depth: int) -> str:
    """Return SQL that converts a value to the merged type."""
    from pyiceberg.types import ListType, MapType, StructType

    if column_type(present) == column_type(merged):
        return sql
    if isinstance(present, StructType) and isinstance(merged, StructType):
        return _conform_struct(sql, present, merged, depth)
    inner = f"e{depth}"
    if isinstance(present, ListType) and isinstance(merged, ListType):
        element = _conform(inner, present.element_type, merged.element_type, depth + 1)
        return f"transform({sql}, {inner} -> {element})"
    if isinstance(present, MapType) and isinstance(merged, MapType):
        inner_key = f"k{depth}"
        key = _conform(inner_key, present.key_type, merged.key_type, depth + 1)
        value = _conform(inner, present.value_type, merged.value_type, depth + 1)
        values = f"transform_values({sql}, ({inner_key}, {inner}) -> {value})"
        return f"transform_keys({values}, ({inner_key}, {inner}) -> {key})"
    return f"CAST({sql} AS {column_type(merged)})"


def _conform_struct(sql: str, present: "StructType", merged: "StructType", depth: int) -> str:
    present_fields = {field.field_id: field for field in present.fields}
    parts = []
    for field in merged.fields:
        present_field = present_fields.get(field.field_id)
        value = _read_sql(present_field, field.field_type, f"{sql}.", depth)
        parts.append(f"{literal(field.name)}, {value}")
    return f"CASE WHEN {sql} IS NOT NULL THEN named_struct({', '.join(parts)}) END"
