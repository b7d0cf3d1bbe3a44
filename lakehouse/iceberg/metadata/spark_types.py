"""Conversion of Spark DataFrame types to declared types."""

from typing import TYPE_CHECKING

from lakehouse.tables.quoting import identifier
from lakehouse.tables.types import Array, ColumnType, Decimal, Field, Map, Primitive, Struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType


_WIDER = {"byte": "int", "short": "int", "char": "string", "varchar": "string"}
"""The Iceberg type that replaces a Spark type without an Iceberg counterpart."""


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
        if _is_narrow(field.dataType):
            terms.append(f"CAST({quoted} AS {of_spark(field.dataType)}) AS {quoted}")
            is_widened = True
        else:
            terms.append(quoted)
    return frame.selectExpr(*terms) if is_widened else frame


def _is_narrow(kind: "DataType") -> bool:
    """Whether a type is, or contains, one that Iceberg lacks."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    match kind:
        case ArrayType():
            return _is_narrow(kind.elementType)
        case MapType():
            return _is_narrow(kind.keyType) or _is_narrow(kind.valueType)
        case StructType():
            return any(_is_narrow(field.dataType) for field in kind.fields)
    return kind.typeName() in _WIDER
