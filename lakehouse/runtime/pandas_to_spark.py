"""Frames of pandas, Arrow and Spark, made from one another by way of Arrow."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def to_spark(spark: "SparkSession", frame: "pd.DataFrame") -> "DataFrame":
    """Return a pandas frame as one of Spark, without its index.

    Arrow knows the types of empty columns and of NULLs, which Spark would guess from the rows.
    """
    if not _takes_arrow():
        return spark.createDataFrame(frame)
    import pyarrow as pa

    return spark.createDataFrame(pa.Table.from_pandas(frame, preserve_index=False))


def arrow_to_spark(spark: "SparkSession", rows: "pa.Table") -> "DataFrame":
    """Return rows of Arrow as a frame of Spark; no file is written for it."""
    return spark.createDataFrame(rows if _takes_arrow() else rows.to_pandas())


def to_pandas(frame: "DataFrame") -> "pd.DataFrame":
    """Collect a Spark frame into pandas; moments are in UTC."""
    # Spark 4.1 calls pandas 3 in ways that it warns of; Arrow does not.
    return (
        frame.toArrow().to_pandas(maps_as_pydicts="strict")
        if _takes_arrow()
        else frame.toPandas()
    )


def _takes_arrow() -> bool:
    import pyspark

    return int(pyspark.__version__.split(".")[0]) >= 4
