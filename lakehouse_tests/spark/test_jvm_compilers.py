"""Which compilers a JVM starts with, by how much data a home has."""

from dataclasses import replace
from pathlib import Path

import pytest

from lakehouse.settings import Settings
from lakehouse.spark.jvm import FIRST_COMPILER, LATER_SECOND_COMPILER, compiler_options

MUCH_BYTES = 30_000_000


def put(path: Path, size_bytes: int) -> None:
    """Put down a file that is as large, and takes no room."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    with path.open("r+b") as file:
        file.truncate(size_bytes)


@pytest.mark.parametrize(
    "place", ["warehouse/silver/fruits/data/1.parquet", "inbox/fruits/1.csv", ".ad-hoc-a/1.csv"]
)
def test_both_compilers_work_where_there_is_much_to_read(settings, home, place):
    assert compiler_options(settings) == FIRST_COMPILER
    put(home / "warehouse" / "little.parquet", 1000)
    assert compiler_options(settings) == FIRST_COMPILER
    put(home / place, MUCH_BYTES)
    assert compiler_options(settings) == ()


def test_both_compilers_work_where_nobody_knows_how_much_there_is(settings: Settings) -> None:
    assert compiler_options(replace(settings, deployment="aws")) == ()


@pytest.mark.parametrize("deployment", ["local", "aws"])
def test_the_driver_of_a_cluster_compiles_what_is_called_often(settings, deployment):
    driver = replace(settings, spark_master="yarn", deployment=deployment)
    assert compiler_options(driver) == LATER_SECOND_COMPILER
