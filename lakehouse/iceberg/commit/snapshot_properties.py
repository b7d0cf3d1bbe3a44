"""Set snapshot properties of commits; `CommitProperties.to_summary` defines them.

Spark accepts them as writer options, and for SQL statements from the session. PyIceberg has an
argument `snapshot_properties`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING

from lakehouse.errors import UsageError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.catalog.iceberg_release import is_spark_3
from lakehouse.iceberg.commit.commit_retries import retry_on_refs
from lakehouse.iceberg.frames.pyspark_internals import (
    commit_properties_of_thread,
    set_all,
    unset_all,
)
from lakehouse.tables.quoting import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrameWriterV2, SparkSession


def set_property(engine: Engine, table: str, name: str, value: str) -> None:
    """Set a property of a table; retried after conflicts."""
    _alter(engine, table, f"SET TBLPROPERTIES ({literal(name)} = {literal(value)})")


def unset_property(engine: Engine, table: str, name: str) -> None:
    """Remove a property of a table, if it exists."""
    _alter(engine, table, f"UNSET TBLPROPERTIES IF EXISTS ({literal(name)})")


def _alter(engine: Engine, table: str, change: str) -> None:
    statement = f"ALTER TABLE {engine.catalog.sql_name(table)} {change}"
    retry_on_refs(lambda: engine.sql(statement))


_OPTION = "snapshot-property."
_SESSION_OPTION = f"spark.sql.iceberg.{_OPTION}"
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
_session = Lock()
"""All threads of a session share its properties; writers with their own options ignore them."""


def writer_with(
    writer: "DataFrameWriterV2", properties: Mapping[str, str]
) -> "DataFrameWriterV2":
    """Return a writer whose commit has these properties."""
    for key, value in properties.items():
        writer = writer.option(f"{_OPTION}{key}", value)
    return writer


@contextmanager
def session_with(
    spark: "SparkSession",
    properties: Mapping[str, str],
    settings: Mapping[str, str] = NO_SETTINGS,
) -> Iterator[None]:
    """Set properties for the commits of SQL statements.

    :param settings: Spark settings for planning the statements, by their full names.
    """
    with _properties_of(spark, properties) as options, _session:
        options |= settings
        before = {key: spark.conf.get(key, None) for key in settings}
        try:
            set_all(spark, options)
            yield
        finally:
            unset_all(spark, options)
            set_all(spark, {key: had for key, had in before.items() if had is not None})


@contextmanager
def _properties_of(
    spark: "SparkSession", properties: Mapping[str, str]
) -> Iterator[dict[str, str]]:
    """Set properties for this thread's statements, and return those that the session needs."""
    if not is_spark_3():
        yield {f"{_SESSION_OPTION}{key}": value for key, value in properties.items()}
        return
    from pyspark.sql.utils import is_remote

    if is_remote():
        raise UsageError(
            "A Spark 3.5 client cannot set the snapshot properties of SQL commits, which identify"
            " writes; expected Spark 4 behind SPARK_REMOTE, or a Spark in this process.",
            next_step="Unset SPARK_REMOTE, or use a client and a server of Spark 4.",
        )
    # Iceberg for Spark 3.5 reads none from the session.
    with commit_properties_of_thread(spark, properties):
        yield {}


def commit_without_rows(
    engine: Engine, table: str, properties: Mapping[str, str], branch: str | None = None
) -> None:
    """Make an empty commit with properties, on main or on a branch."""
    rows = engine.spark.table(engine.catalog.sql_name(table)).where("false")
    target = rows.writeTo(engine.catalog.sql_name(table, branch=branch))
    writer_with(target, properties).append()
