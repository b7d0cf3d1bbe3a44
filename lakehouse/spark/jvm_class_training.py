"""Loads the classes for the archive by writing the warm-up tables, and prints the class path.

Run as `python -m lakehouse.spark.jvm_class_training HOME OPTION…`.
"""

import sys
from dataclasses import replace
from pathlib import Path

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.frames.pyspark_internals import java_property
from lakehouse.settings import Settings
from lakehouse.spark.jvm_warm_up import write_warm_up_tables
from lakehouse.spark.spark_session import close_jvm, open_session


def train(settings: Settings, java_options: list[str]) -> str:
    """Write small tables in a JVM of this process; return its class path."""
    session = open_session(settings, Catalog.of(settings), java_options=java_options)
    write_warm_up_tables(settings)
    class_path = java_property(session, "java.class.path")
    close_jvm()
    return class_path


if __name__ == "__main__":
    in_training = replace(
        Settings.from_env(),
        home=Path(sys.argv[1]),
        deployment="local",
        spark_master="local[2]",
        spark_memory="1g",
    )
    print(train(in_training, sys.argv[2:]))  # noqa: T201
