"""Which compilers a JVM starts with, by how much data a home has."""

from dataclasses import replace
from pathlib import Path

import pytest

from lakehouse.runtime.jvm_compilers import (
    FIRST_COMPILER,
    LATER_SECOND_COMPILER,
    compiler_options,
)
from lakehouse.settings import Settings

MUCH_BYTES = 30_000_000


def put(path: Path, size_bytes: int) -> None:
    """Put down a file that is as large, and takes no room."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    with path.open("r+b") as file:
        file.truncate(size_bytes)


@pytest.mark.parametrize(
    "place",
    [
        "warehouse/silver/fruits/data/1.parquet",
        "inbox/fruits/1.csv",
        ".given-a/inbox/fruits/1.csv",
    ],
)
def test_both_compilers_work_where_there_is_much_to_read(
    settings: Settings, home: Path, place: str
) -> None:
    assert compiler_options(settings) == FIRST_COMPILER
    put(home / "warehouse" / "little.parquet", 1000)
    assert compiler_options(settings) == FIRST_COMPILER
    put(home / place, MUCH_BYTES)
    assert compiler_options(settings) == ()


def test_many_small_files_are_much_too(settings: Settings, home: Path) -> None:
    for number in range(3):
        put(home / "inbox" / "fruits" / f"{number}.csv", MUCH_BYTES // 3)
    assert compiler_options(settings) == ()


@pytest.mark.parametrize("place", ["archive/fruits/1.csv", "logs/spark.log", "dagster/runs.db"])
def test_what_no_command_reads_rows_from_is_not_counted(
    settings: Settings, home: Path, place: str
) -> None:
    put(home / place, MUCH_BYTES)
    assert compiler_options(settings) == FIRST_COMPILER


def test_both_compilers_work_where_nobody_knows_how_much_there_is(settings: Settings) -> None:
    assert compiler_options(replace(settings, deployment="aws")) == ()


@pytest.mark.parametrize("deployment", ["local", "aws"])
def test_the_driver_of_a_cluster_compiles_what_is_called_often(
    settings: Settings, deployment: str
) -> None:
    driver = replace(settings, spark_master="yarn", deployment=deployment)
    assert compiler_options(driver) == LATER_SECOND_COMPILER


def test_a_link_to_itself_is_in_nobodys_way(settings: Settings, home: Path) -> None:
    loop = home / "inbox" / "fruits" / "loop.csv"
    loop.parent.mkdir(parents=True)
    loop.symlink_to(loop.name)
    assert compiler_options(settings) == FIRST_COMPILER
