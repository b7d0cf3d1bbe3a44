"""How a commit gets its snapshot properties; which ones, `CommitProperties.to_summary` says.

Spark takes them as options of a writer, and for SQL statements from the session. PyIceberg
takes them as an argument of its own, `snapshot_properties`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.engine import Engine

if TYPE_CHECKING:
    from pyspark.sql import DataFrameWriterV2, SparkSession

_OPTION = "snapshot-property."
_SESSION_OPTION = f"spark.sql.iceberg.{_OPTION}"
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
_session = Lock()
"""A session has one set of properties for all threads; a commit that is given its own has none
of them.
"""


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
    """Let the commits of SQL statements have these properties.

    :param settings: of Spark, by their whole names, that the statements are planned with.
    """
    options = {f"{_SESSION_OPTION}{key}": value for key, value in properties.items()}
    options |= settings
    with _session:
        before = {key: spark.conf.get(key, None) for key in settings}
        try:
            for key, value in options.items():
                spark.conf.set(key, value)
            yield
        finally:
            for key in options:
                spark.conf.unset(key)
            for key, had in before.items():
                if had is not None:
                    spark.conf.set(key, had)


def commit_without_rows(
    engine: Engine, table: str, properties: Mapping[str, str], branch: str | None = None
) -> None:
    """Commit nothing but properties, on top of main or of a branch."""
    rows = engine.spark.table(engine.catalog.sql_name(table)).where("false")
    target = rows.writeTo(engine.catalog.sql_name(table, branch=branch))
    writer_with(target, properties).append()
