"""A catalog that came from a backup is older than the tables' files: what was committed since is
told, and no upkeep takes it for lost.
"""

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import IcebergTables
from sqlalchemy import update

from lakehouse.cli.project.doctor_checks import findings
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.erasure.remove_unnamed import remove_unnamed
from lakehouse.iceberg.metadata.unknown_commits import find_unknown_commits
from lakehouse.settings import Settings
from lakehouse_tests.without_spark import engine_without_spark

NAME = "silver.fruits"
SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def catalog(settings: Settings) -> Catalog:
    """A catalog with a table of two commits."""
    made = Catalog.of(settings)
    made.client.create_namespace("silver")
    made.client.create_table(NAME, SCHEMA)
    append(made, 2)
    return made


@pytest.fixture
def restored(catalog: Catalog, settings: Settings) -> Path:
    """The metadata of the last of two commits that the catalog does not know, since it came from
    a backup.
    """
    file = settings.home / "catalog.db"
    backup = settings.home / "backup.db"
    copy(file, backup)
    append(catalog, 2)
    last = current(catalog)
    copy(backup, file)
    assert catalog.load(NAME).scan().count() == 2
    return last


def test_doctor_names_it(catalog: Catalog, restored: Path, settings: Settings) -> None:
    (tables,) = [line for line in findings(settings) if line.name == "tables"]

    assert not tables.ok
    assert f"{NAME} has commits that the catalog does not know" in tables.found
    assert str(restored) in tables.found


def test_it_is_not_removed_as_an_orphan(
    catalog: Catalog, restored: Path, settings: Settings
) -> None:
    append(catalog, 1)
    for file in restored.parent.iterdir():
        if file != current(catalog):
            two_days_ago = time.time() - 2 * 86_400
            os.utime(file, (two_days_ago, two_days_ago))

    (result,) = remove_unnamed(engine_without_spark(settings), [NAME])

    assert result.outcome == "failed"
    assert str(restored) in result.reason
    assert restored.exists()


def test_registered_again_as_the_docs_say_all_rows_are_there(
    catalog: Catalog, restored: Path
) -> None:
    catalog.client.drop_table(NAME)
    catalog.client.register_table(NAME, f"file://{restored}")

    assert catalog.load(NAME).scan().count() == 4
    assert find_unknown_commits(catalog.load(NAME)) is None


def test_a_commit_that_lost_a_race_is_none(catalog: Catalog) -> None:
    before = current(catalog)
    append(catalog, 1)
    winner = current(catalog)
    # The other one wrote its file by what was current before, and was told then that it lost.
    point_at(catalog, before)
    append(catalog, 1)
    loser = current(catalog)
    point_at(catalog, winner)

    append(catalog, 1)

    assert loser.exists() and loser != winner
    assert find_unknown_commits(catalog.load(NAME)) is None


def test_a_commit_that_was_killed_is_none(catalog: Catalog) -> None:
    before = current(catalog)
    append(catalog, 1)
    point_at(catalog, before)

    assert find_unknown_commits(catalog.load(NAME)) is None


def append(catalog: Catalog, times: int) -> None:
    for at in range(times):
        # Metadata tells times in milliseconds.
        time.sleep(0.002)
        catalog.load(NAME).append(rows(at))


def rows(at: int) -> pa.Table:
    return pa.table({"id": [at]}, schema=SCHEMA)


def current(catalog: Catalog) -> Path:
    return Path(catalog.load(NAME).metadata_location.removeprefix("file://"))


def point_at(catalog: Catalog, metadata: Path) -> None:
    """Let the catalog name another metadata file."""
    with catalog.client.engine.begin() as connection:  # type: ignore[attr-defined]
        connection.execute(update(IcebergTables).values(metadata_location=f"file://{metadata}"))


def copy(source: Path, target: Path) -> None:
    """Copy a database as a backup does, also while it is open."""
    with closing(sqlite3.connect(source)) as read, closing(sqlite3.connect(target)) as written:
        read.backup(written)
