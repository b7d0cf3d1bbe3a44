"""Column types in the Open Data Contract Standard."""

from typing import Any

from lakehouse.tables.types import Array, ColumnType, Decimal, Map, Struct

_LOGICAL_TYPES: dict[str, dict[str, Any]] = {
    "boolean": {"logicalType": "boolean"},
    "int": {"logicalType": "integer", "logicalTypeOptions": {"format": "i32"}},
    "bigint": {"logicalType": "integer", "logicalTypeOptions": {"format": "i64"}},
    "float": {"logicalType": "number", "logicalTypeOptions": {"format": "f32"}},
    "double": {"logicalType": "number", "logicalTypeOptions": {"format": "f64"}},
    "date": {"logicalType": "date"},
    "timestamp": {"logicalType": "timestamp", "logicalTypeOptions": {"timezone": True}},
    "timestamp_ntz": {"logicalType": "timestamp", "logicalTypeOptions": {"timezone": False}},
    "string": {"logicalType": "string"},
    # The standard has no logical type for bytes.
    "binary": {},
}


def type_fields(column_type: ColumnType) -> dict[str, Any]:
    """Return the type fields of a property: the logical type, the physical type in Spark's
    notation, and the parts of a nested type.
    """
    return {
        **_logical_fields(column_type),
        "physicalType": str(column_type),
        **_parts(column_type),
    }


def _logical_fields(column_type: ColumnType) -> dict[str, Any]:
    match column_type:
        case Decimal():
            return {"logicalType": "number"}
        case Struct():
            return {"logicalType": "object"}
        case Array():
            return {"logicalType": "array"}
        case Map():
            return {"logicalType": "map"}
        case _:
            return _LOGICAL_TYPES[str(column_type)]


def _parts(column_type: ColumnType) -> dict[str, Any]:
    match column_type:
        case Struct(fields=fields):
            parts = [{"name": field.name, **type_fields(field.type)} for field in fields]
            return {"properties": parts}
        case Array(element=element):
            return {"items": type_fields(element)}
        case Map(key=key, value=value):
            return {"map": {"key": type_fields(key), "value": type_fields(value)}}
        case _:
            return {}
