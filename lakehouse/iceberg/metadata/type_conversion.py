"""Conversion of Iceberg and DataFrame types to declared types, which have Spark's names."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lakehouse.tables.quoting import identifier
from lakehouse.tables.types import Array, ColumnType, Decimal, Field, Map, Primitive, Struct

if TYPE_CHECKING:
    from pyiceberg.types import IcebergType
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType


_SPARK_NAMES = {"long": "bigint", "timestamp": "timestamp_ntz", "timestamptz": "timestamp"}
"""Spark's name of each Iceberg type, where they differ."""
_ICEBERG_NAMES = {spark: iceberg for iceberg, spark in _SPARK_NAMES.items()}


def column_type(iceberg_type: "IcebergType") -> ColumnType:
    """Return an Iceberg type as a declared type; types without a declared name keep Iceberg's."""
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


def iceberg_type(declared: ColumnType, ids: Iterator[int]) -> "IcebergType":
    """Return a declared type as an Iceberg type.

    :param ids: field ids for nested fields.
    """
    from pyiceberg.types import (
        DecimalType,
        IcebergType,
        ListType,
        MapType,
        NestedField,
        StructType,
    )

    match declared:
        case Decimal():
            return DecimalType(declared.precision, declared.scale)
        case Struct():
            fields = []
            for field in declared.fields:
                field_id = next(ids)
                fields.append(
                    NestedField(field_id, field.name, iceberg_type(field.type, ids), False)
                )
            return StructType(*fields)
        case Array():
            return ListType(next(ids), iceberg_type(declared.element, ids), False)
        case Map():
            key_id, value_id = next(ids), next(ids)
            key, value = iceberg_type(declared.key, ids), iceberg_type(declared.value, ids)
            return MapType(key_id, key, value_id, value, False)
    return IcebergType.model_validate(_ICEBERG_NAMES.get(declared.name, declared.name))


_WIDER = {"byte": "int", "short": "int", "char": "string", "varchar": "string"}
"""The Iceberg type that replaces a Spark type without an Iceberg counterpart."""
_NARROW = re.compile(r"\b(?:tinyint|smallint)\b(?!:)|char\(")
"""These types in Spark's text of a type, in which names of fields end with a colon."""


def of_spark(kind: "DataType") -> ColumnType:
    """Return a Spark type as a declared type, widened to a type that Iceberg has."""
    from pyspark.sql.types import ArrayType, DecimalType, MapType, StructType

    match kind:
        case DecimalType():
            return Decimal(kind.precision, kind.scale)
        case ArrayType():
            return Array(of_spark(kind.elementType))
        case MapType():
            return Map(of_spark(kind.keyType), of_spark(kind.valueType))
        case StructType():
            return Struct(
                tuple(Field(field.name, of_spark(field.dataType)) for field in kind.fields)
            )
    return Primitive(_WIDER.get(kind.typeName()) or kind.simpleString())


def widened(frame: "DataFrame") -> "DataFrame":
    """Return a DataFrame cast to types that Iceberg has; usually no cast is needed."""
    terms, is_widened = [], False
    for field in frame.schema.fields:
        quoted = identifier(field.name)
        if _NARROW.search(field.dataType.simpleString()):
            terms.append(f"CAST({quoted} AS {of_spark(field.dataType)}) AS {quoted}")
            is_widened = True
        else:
            terms.append(quoted)
    return frame.selectExpr(*terms) if is_widened else frame
