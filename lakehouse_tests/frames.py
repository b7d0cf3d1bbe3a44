"""Frames of a test's own rows.

Rows handed to Spark as a list go through Python workers each time that the frame is read; as an
Arrow table they are the JVM's at once.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.frames.frames import arrow_to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frame_of(spark: "SparkSession", schema: str, rows: Iterable[Sequence[Any]]) -> "DataFrame":
    """Return a frame of some rows, in their order; columns of nested types go the slow way."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import ArrayType, MapType, StructType, _parse_datatype_string

    given = list(rows)
    declared = _parse_datatype_string(schema)
    nested = (ArrayType, MapType, StructType)
    if any(isinstance(column.dataType, nested) for column in declared.fields):
        return spark.createDataFrame(given, declared)
    arrow_schema = to_arrow_schema(declared)
    columns = list(zip(*given, strict=True)) or [()] * len(declared.fields)
    arrays = [
        pa.array(values, column.type)
        for values, column in zip(columns, arrow_schema, strict=True)
    ]
    return arrow_to_spark(spark, pa.Table.from_arrays(arrays, schema=arrow_schema), declared)
