"""How the columns of two snapshots of a table correspond: by their field ids, under the names
that they have now.
"""

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
    """A column of either snapshot, and the SQL that reads it in each, in the wider of its two
    types.

    A column, or a field inside one, that a snapshot has not is NULL there.
    """

    name: str
    type: ColumnType
    before: str
    after: str


def shared_columns(
    current: "Schema", before: "Schema", after: "Schema"
) -> tuple[SharedColumn, ...]:
    """Return the columns of two schemas: those that the table still has in their order and by
    their names, then others.

    A column that was dropped keeps its last name, with `_dropped` added where another has that
    name by now.
    """
    earlier, later, now = (
        {field.field_id: field for field in schema.fields}
        for schema in (before, after, current)
    )
    known = [field_id for field_id in now if field_id in earlier or field_id in later]
    dropped = [field_id for field_id in {**later, **earlier} if field_id not in now]
    names = {field_id: now[field_id].name for field_id in known}
    for field_id in dropped:
        names[field_id] = _free((later.get(field_id) or earlier[field_id]).name, names.values())
    return tuple(
        _shared(names[field_id], earlier.get(field_id), later.get(field_id))
        for field_id in names
    )


def _free(name: str, taken: Iterable[str]) -> str:
    lowered = {other.lower() for other in taken}
    while name.lower() in lowered:
        name += "_dropped"
    return name


def _shared(
    name: str, before: "NestedField | None", after: "NestedField | None"
) -> SharedColumn:
    present = [field for field in (after, before) if field is not None]
    merged = _merged(present[0].field_type, present[-1].field_type)
    return SharedColumn(name, column_type(merged), _read(before, merged), _read(after, merged))


def _read(field: "NestedField | None", wanted: "IcebergType") -> str:
    if field is None:
        return f"CAST(NULL AS {column_type(wanted)})"
    return _conformed(identifier(field.name), field.field_type, wanted, 0)


def _merged(one: "IcebergType", other: "IcebergType") -> "IcebergType":
    """Return the type that holds the values of both; fields that only the other has come
    last.
    """
    from pyiceberg.types import ListType, MapType, StructType

    if isinstance(one, StructType) and isinstance(other, StructType):
        found = {field.field_id: field for field in other.fields}
        both = [
            _with_type(field, found.pop(field.field_id, field).field_type)
            for field in one.fields
        ]
        names = [field.name for field in both]
        for field in found.values():
            names.append(_free(field.name, names))
            both.append(field.model_copy(update={"name": names[-1]}))
        return StructType(*both)
    if isinstance(one, ListType) and isinstance(other, ListType):
        return ListType(
            one.element_id,
            _merged(one.element_type, other.element_type),
            element_required=False,
        )
    if isinstance(one, MapType) and isinstance(other, MapType):
        key, value = (
            _merged(one.key_type, other.key_type),
            _merged(one.value_type, other.value_type),
        )
        return MapType(one.key_id, key, one.value_id, value, value_required=False)
    return other if is_wider(column_type(other), column_type(one)) else one


def _with_type(field: "NestedField", other: "IcebergType") -> "NestedField":
    return field.model_copy(update={"field_type": _merged(field.field_type, other)})


def _conformed(sql: str, found: "IcebergType", wanted: "IcebergType", depth: int) -> str:
    """Return SQL that brings a value from one type into one that was merged from it."""
    from pyiceberg.types import ListType, MapType, StructType

    if column_type(found) == column_type(wanted):
        return sql
    if isinstance(found, StructType) and isinstance(wanted, StructType):
        return _conformed_struct(sql, found, wanted, depth)
    inner = f"e{depth}"
    if isinstance(found, ListType) and isinstance(wanted, ListType):
        return (
            f"transform({sql}, {inner} ->"
            f" {_conformed(inner, found.element_type, wanted.element_type, depth + 1)})"
        )
    if isinstance(found, MapType) and isinstance(wanted, MapType):
        key = _conformed(f"k{depth}", found.key_type, wanted.key_type, depth + 1)
        value = _conformed(inner, found.value_type, wanted.value_type, depth + 1)
        values = f"transform_values({sql}, (k{depth}, {inner}) -> {value})"
        return f"transform_keys({values}, (k{depth}, {inner}) -> {key})"
    return f"CAST({sql} AS {column_type(wanted)})"


def _conformed_struct(sql: str, found: "StructType", wanted: "StructType", depth: int) -> str:
    fields = {field.field_id: field for field in found.fields}
    parts = []
    for field in wanted.fields:
        have = fields.get(field.field_id)
        value = (
            f"CAST(NULL AS {column_type(field.field_type)})"
            if have is None
            else _conformed(
                f"{sql}.{identifier(have.name)}", have.field_type, field.field_type, depth
            )
        )
        parts.append(f"{literal(field.name)}, {value}")
    return f"CASE WHEN {sql} IS NOT NULL THEN named_struct({', '.join(parts)}) END"
