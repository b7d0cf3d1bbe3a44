"""Spark DataFrames from Arrow tables, for which executors need no Python."""

from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.spark_line import is_spark_3

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


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
