"""Rows of a table at a snapshot, and rows appended between two snapshots."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.pyspark_internals import make_active

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rows_at(engine: Engine, table: str, snapshot_id: int) -> "DataFrame":
    """Return a table as of a snapshot.

    With `spark.read.table`, Spark 3.5 ignores the option, and reads the newest rows.
    """
    return _load(engine, table, {"versionAsOf": str(snapshot_id)})


def rows_between(
    engine: Engine, table: str, since_snapshot_id: int, snapshot_id: int
) -> "DataFrame":
    """Return the rows appended after one snapshot, up to another."""
    bounds = {
        "start-snapshot-id": str(since_snapshot_id),
        "end-snapshot-id": str(snapshot_id),
    }
    return _load(engine, table, bounds)


def _load(engine: Engine, table: str, options: Mapping[str, str]) -> "DataFrame":
    make_active(engine.spark)
    name = engine.catalog.sql_name(table)
    return engine.spark.read.format("iceberg").options(**options).load(name)
