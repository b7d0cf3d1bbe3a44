"""The rows that a table had at a snapshot."""

from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.engine import Engine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rows_at(engine: Engine, table: str, snapshot_id: int) -> "DataFrame":
    """Return the frame of a table as it was at a snapshot, whatever is committed meanwhile.

    By the source's name: where a table is read by `spark.read.table`, Spark 3.5 takes no notice
    of the option, and reads what is newest.
    """
    name = engine.catalog.sql_name(table)
    at = engine.spark.read.format("iceberg").option("versionAsOf", str(snapshot_id))
    return at.load(name)
