"""Iceberg's types and those of a declaration, which are named as Spark names them."""

from typing import TYPE_CHECKING

from lakehouse.tables.types import Array, ColumnType, Decimal, Field, Map, Primitive, Struct

if TYPE_CHECKING:
    from pyiceberg.types import IcebergType

_SPARK_NAMES = {"long": "bigint", "timestamp": "timestamp_ntz", "timestamptz": "timestamp"}
"""By Iceberg's name of a type, Spark's, where they differ."""
_ICEBERG_NAMES = {spark: iceberg for iceberg, spark in _SPARK_NAMES.items()}


def column_type(iceberg_type: "IcebergType") -> ColumnType:
    """Return an Iceberg type as Spark names it; one that has no name in a declaration keeps
    Iceberg's.
    """
    from pyiceberg.types import (
        DecimalType,
        FixedType,
        ListType,
        MapType,
        StructType,
        UUIDType,
    )

    match iceberg_type:
        case DecimalType():
            return Decimal(iceberg_type.precision, iceberg_type.scale)
        case StructType():
            return Struct(
                tuple(
                    Field(field.name, column_type(field.field_type))
                    for field in iceberg_type.fields
                )
            )
        case ListType():
            return Array(column_type(iceberg_type.element_type))
        case MapType():
            return Map(column_type(iceberg_type.key_type), column_type(iceberg_type.value_type))
        case FixedType():
            return Primitive("binary")
        case UUIDType():
            return Primitive("string")
    return Primitive(_SPARK_NAMES.get(str(iceberg_type), str(iceberg_type)))


def iceberg_name(primitive: Primitive) -> str:
    """Return Iceberg's name of a type without parts."""
    return _ICEBERG_NAMES.get(primitive.name, primitive.name)
