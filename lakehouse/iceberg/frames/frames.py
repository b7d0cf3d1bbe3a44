"""DataFrames from Arrow tables, their unions, and collected rows in UTC."""

from collections.abc import Callable, Iterable
from datetime import UTC
from functools import reduce
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.catalog.iceberg_release import is_spark_3

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.types import DataType, StructType


def arrow_to_spark(
    spark: "SparkSession", rows: "pa.Table", schema: "StructType | None" = None
) -> "DataFrame":
    """Return an Arrow table as a Spark DataFrame; the schema defaults to that of `rows`."""
    if not is_spark_3():
        # PySpark's type stubs do not allow a schema with Arrow data.
        return spark.createDataFrame(rows, schema)
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema

    declared = schema or from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
    if any(map(pa.types.is_nested, rows.schema.types)):
        columns = [column.to_pylist() for column in rows.columns]
        return spark.createDataFrame(list(zip(*columns, strict=True)), declared)
    # With pandas' default types, integers in a column with NULL would become floats.
    return spark.createDataFrame(rows.to_pandas(types_mapper=pd.ArrowDtype), declared)


def collect(frame: "DataFrame") -> "list[Row]":
    """Return the rows of a DataFrame, with timestamps in UTC, also nested ones."""
    from pyspark.sql import Row
    from pyspark.sql.functions import col

    fields = frame.schema.fields
    add_zones = [_zone_adder(field.dataType) for field in fields]
    if not any(add_zones):
        return frame.collect()
    # Several columns can have the same name.
    numbers = [f"__{at}" for at in range(len(fields))]
    terms = []
    for number, field, add_zone in zip(numbers, fields, add_zones, strict=True):
        value = col(number)
        if add_zone:
            value = value.cast(_without_zone(field.dataType))
        terms.append(value.alias(field.name))
    make = Row(*(field.name for field in fields))
    rows = []
    for row in frame.toDF(*numbers).select(*terms).collect():
        values = zip(row, add_zones, strict=True)
        rows.append(make(*(_with_zone(value, add_zone) for value, add_zone in values)))
    return rows


def _without_zone(kind: "DataType") -> "DataType":
    """Return a type with TimestampNTZType in place of TimestampType."""
    from pyspark.sql.types import (
        ArrayType,
        MapType,
        StructField,
        StructType,
        TimestampNTZType,
        TimestampType,
    )

    match kind:
        case TimestampType():
            return TimestampNTZType()
        case ArrayType():
            return ArrayType(_without_zone(kind.elementType), kind.containsNull)
        case MapType():
            key, value = _without_zone(kind.keyType), _without_zone(kind.valueType)
            return MapType(key, value, kind.valueContainsNull)
        case StructType():
            fields = []
            for field in kind.fields:
                inner = _without_zone(field.dataType)
                fields.append(StructField(field.name, inner, field.nullable, field.metadata))
            return StructType(fields)
    return kind


def _zone_adder(kind: "DataType") -> Callable[[Any], Any] | None:
    """Return a function that adds UTC to the times of a value; None if it has none.

    :param kind: the type of the value before `_without_zone`.
    """
    from pyspark.sql import Row
    from pyspark.sql.types import ArrayType, MapType, StructType, TimestampType

    match kind:
        case TimestampType():
            return lambda value: value.replace(tzinfo=UTC)
        case ArrayType():
            of_item = _zone_adder(kind.elementType)
            return of_item and (lambda items: [_with_zone(item, of_item) for item in items])
        case MapType():
            of_key, of_value = _zone_adder(kind.keyType), _zone_adder(kind.valueType)
            if not of_key and not of_value:
                return None
            return lambda items: {
                _with_zone(key, of_key): _with_zone(value, of_value)
                for key, value in items.items()
            }
        case StructType():
            of_fields = [_zone_adder(field.dataType) for field in kind.fields]
            make = Row(*kind.names)
            if not any(of_fields):
                return None
            return lambda row: make(*map(_with_zone, row, of_fields))
    return None


def _with_zone(value: Any, add_zone: Callable[[Any], Any] | None) -> Any:
    return value if value is None or add_zone is None else add_zone(value)


def union_all(frames: "Iterable[DataFrame]", *, allow_missing: bool = False) -> "DataFrame":
    """Return the union of one or more DataFrames, by column name."""
    return reduce(
        lambda rows, more: rows.unionByName(more, allowMissingColumns=allow_missing), frames
    )
