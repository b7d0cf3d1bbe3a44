"""Frames of Spark made of rows of Arrow.

Executors need no Python for these; rows of plain Python are read there by one.
"""

from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.spark_line import is_spark_3

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def arrow_to_spark(
    spark: "SparkSession", rows: "pa.Table", schema: "StructType | None" = None
) -> "DataFrame":
    """Return rows of Arrow as a frame of Spark; no file stays of it.

    :param schema: of the frame; that of the rows where it is not given.
    """
    if not is_spark_3():
        # PySpark's stubs know no Arrow with a schema.
        return spark.createDataFrame(rows, schema)
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema

    declared = schema or from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
    if any(map(pa.types.is_nested, rows.schema.types)):
        columns = [column.to_pylist() for column in rows.columns]
        return spark.createDataFrame(list(zip(*columns, strict=True)), declared)
    # In pandas' own types, whole numbers beside NULL would be fractions.
    return spark.createDataFrame(rows.to_pandas(types_mapper=pd.ArrowDtype), declared)
