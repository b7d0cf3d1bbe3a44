"""Frames of pandas, Arrow and Spark, made from one another by way of Arrow."""

from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.spark_line import is_spark_3

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def to_spark(spark: "SparkSession", frame: "pd.DataFrame") -> "DataFrame":
    """Return a pandas frame as one of Spark, without its index.

    Arrow knows the types of empty columns and of NULLs, which Spark would guess from the rows.
    """
    import pyarrow as pa

    return arrow_to_spark(spark, pa.Table.from_pandas(frame, preserve_index=False))


def arrow_to_spark(
    spark: "SparkSession", rows: "pa.Table", schema: "StructType | None" = None
) -> "DataFrame":
    """Return rows of Arrow as a frame of Spark; no file is written for it.

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


def to_pandas(frame: "DataFrame") -> "pd.DataFrame":
    """Collect a Spark frame into pandas; moments are in UTC."""
    if is_spark_3():
        return frame.toPandas()
    # Spark 4.1 calls pandas 3 in ways that it warns of; Arrow does not.
    return frame.toArrow().to_pandas(maps_as_pydicts="strict")
