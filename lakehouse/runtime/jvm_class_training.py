"""What the archive of Java's classes is made from: one small table, written as each is.

Run as `python -m lakehouse.runtime.jvm_class_training HOME OPTION…`, with a folder that is dropped
afterwards and the options of the JVM that records; prints the class path of that JVM.
"""

import sys
from dataclasses import replace
from pathlib import Path

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.pyspark_internals import java_property
from lakehouse.iceberg.read.inputs import incremental
from lakehouse.iceberg.rules.rows import castable, not_null
from lakehouse.iceberg.rules.unique_and_references import unique
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.runtime.spark import close_jvm, open_session
from lakehouse.settings import Settings
from lakehouse.tables.table import Append, Column, IcebergTable, Merge

_DELIVERED = IcebergTable(
    "bronze.trained",
    "Rows as they come.",
    [Column("id", "string"), Column("name", "string")],
    write=Append(once_by=["id"]),
)
_MERGED = IcebergTable(
    "silver.trained",
    "Rows by a key.",
    [Column("id", "bigint"), Column("name", "string")],
    write=Merge(on=["name"]),
    rules=[castable("id", "bigint"), not_null("name"), unique("name")],
)


def train(settings: Settings, java_options: list[str]) -> str:
    """Write small tables in a JVM of this process, and end it.

    :returns: the class path that the JVM had.
    """
    session = open_session(settings, Catalog.of(settings), java_options=java_options)
    write_small_tables(settings)
    class_path = java_property(session, "java.class.path")
    close_jvm()
    return class_path


def write_small_tables(settings: Settings) -> None:
    """Write a table by append and another by merge in a home that holds nothing else, and read
    them.
    """
    catalog = Catalog.of(settings)
    session = open_session(settings, catalog)
    engine = Engine(catalog, lambda: session, settings.lock_dir, masking_key=b"training")
    for number in range(2):
        rows = [(str(number), "a name"), ("no number", "another")]
        write(
            engine,
            _DELIVERED,
            lambda rows=rows: session.createDataFrame(rows, "id string, name string"),
        )
        write(
            engine,
            _MERGED,
            lambda delivered: delivered,
            {"delivered": incremental(_DELIVERED.name)},
        )
    session.table(catalog.sql_name(_MERGED.name)).orderBy("id").collect()


if __name__ == "__main__":
    in_training = replace(
        Settings.from_env(),
        home=Path(sys.argv[1]),
        deployment="local",
        spark_master="local[2]",
        spark_memory="1g",
    )
    print(train(in_training, sys.argv[2:]))  # noqa: T201
