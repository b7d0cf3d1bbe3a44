"""Matching columns of two snapshots of a table, by field id, with their current names."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.type_conversion import column_type
from lakehouse.tables.quoting import identifier, json_of
from lakehouse.tables.type_promotion import is_wider
from lakehouse.tables.types import Array, ColumnType, Map, Primitive, Struct

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField

_NESTED = (Array, Map, Struct)
_NULL = "CAST(NULL AS string)"


@dataclass(frozen=True)
class SharedColumn:
    """A column of either snapshot, with the SQL to read it from each in the wider type.

    It is NULL where a snapshot lacks it. A nested column with another type is read as JSON.
    """

    name: str
    type: ColumnType
    before: str
    after: str


def shared_columns(
    current: "Schema", before: "Schema", after: "Schema"
) -> tuple[SharedColumn, ...]:
    """Return the columns of two schemas: current columns in order, then dropped ones."""
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
    types = [column_type(field.field_type) for field in present]
    if types[0] != types[-1] and any(isinstance(kind, _NESTED) for kind in types):
        # JSON omits fields without a value, such as those that were added.
        json_terms = (
            json_of(identifier(field.name)) if field else _NULL for field in (before, after)
        )
        return SharedColumn(name, Primitive("string"), *json_terms)
    merged = types[-1] if is_wider(types[-1], types[0]) else types[0]
    return SharedColumn(name, merged, _read_sql(before, merged), _read_sql(after, merged))


def _read_sql(field: "NestedField | None", merged: ColumnType) -> str:
    if field is None:
        return f"CAST(NULL AS {merged})"
    sql = identifier(field.name)
    return sql if column_type(field.field_type) == merged else f"CAST({sql} AS {merged})"
