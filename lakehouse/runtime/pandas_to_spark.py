"""Frames of pandas, Arrow and Spark, made from one another by way of Arrow."""

from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.arrow_frames import arrow_to_spark
from lakehouse.iceberg.metadata.spark_line import is_spark_3

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession


def to_spark(spark: "SparkSession", frame: "pd.DataFrame") -> "DataFrame":
    """Return a pandas DataFrame as a Spark one, with types by Arrow instead of guesses."""
    import pyarrow as pa

    return arrow_to_spark(spark, pa.Table.from_pandas(frame, preserve_index=False))


def to_pandas(frame: "DataFrame") -> "pd.DataFrame":
    """Collect a Spark frame into pandas; moments are in UTC."""
    if is_spark_3():
        return frame.toPandas()
    # Spark 4.1 calls pandas 3 in ways that it warns of; Arrow does not.
    return frame.toArrow().to_pandas(maps_as_pydicts="strict")
