"""Queries that run as one Spark job each."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ADAPTIVE = "spark.sql.adaptive.enabled"


@contextmanager
def planned_once(spark: "SparkSession") -> Iterator[None]:
    """Let queries be planned before they run, and not again after each stage, which makes a job of every stage.

    An aggregate of a table has nothing to be planned again.
    """
    before = spark.conf.get(_ADAPTIVE)
    spark.conf.set(_ADAPTIVE, "false")
    try:
        yield
    finally:
        spark.conf.set(_ADAPTIVE, before)  # type: ignore[arg-type]
