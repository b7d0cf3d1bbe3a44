"""A catalog that is missing or damaged beside its tables: nothing begins anew, and each error
says what to do.
"""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from lakehouse.errors import CatalogDamaged, SetupError, TableDamaged
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.catalog_file import check_catalog_file
from lakehouse.settings import Settings

pytestmark = pytest.mark.unit

NAME = "silver.fruits"
_MAKE_TABLE = """
import sqlite3, sys
file = sqlite3.connect(sys.argv[1])
# As a JVM's connections are, and from then on all. The last one to close deletes the log of changes.
file.execute("PRAGMA journal_mode = WAL")
columns = "catalog_name, table_namespace, table_name, metadata_location"
file.execute(f"INSERT INTO iceberg_tables ({columns}) VALUES ('lakehouse', 'silver', ?, 'nowhere')", [sys.argv[2]])
file.commit()
print("made", flush=True)
sys.stdin.read()
file.close()
"""


def making(file: Path, table: str) -> subprocess.Popen:
    """Start a process that makes a table, and has the catalog open as long as its input is."""
    command = [sys.executable, "-c", _MAKE_TABLE, str(file), table]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "made\n"
    return process


def make_elsewhere(file: Path, table: str) -> None:
    """Make a table in a process that ends."""
    with making(file, table):
        pass


@pytest.fixture
def file(settings: Settings) -> Path:
    """The file of a catalog that has a table."""
    made = Catalog.of(settings).client
    made.create_namespace("silver")
    made.create_table(NAME, Schema(NestedField(1, "id", LongType())))
    made.engine.dispose()
    return settings.home / "catalog.db"


@pytest.mark.parametrize("found", ["missing", "empty"])
def test_no_table_begins_anew_beside_those_that_are_there(
    settings: Settings, file: Path, found: str
) -> None:
    file.unlink()
    if found == "empty":
        file.touch()
    with pytest.raises(
        CatalogDamaged,
        match=f"{file} is {found}, and .*warehouse holds tables, such as silver.fruits",
    ):
        Catalog.of(settings)
    assert file.exists() == (found == "empty")


def test_a_catalog_that_was_begun_anew_in_silence_is_refused_too(
    settings: Settings, file: Path
) -> None:
    elsewhere = replace(settings, home=settings.home.parent / "elsewhere")
    assert Catalog.of(elsewhere).tables() == []
    (elsewhere.home / "catalog.db").replace(file)
    with pytest.raises(CatalogDamaged, match="is empty"):
        Catalog.of(settings)


def test_a_catalog_whose_tables_were_dropped_is_no_lost_one(
    settings: Settings, file: Path
) -> None:
    Catalog.of(settings).client.drop_table(NAME)
    assert list((settings.home / "warehouse").rglob("*.metadata.json"))
    assert Catalog.of(settings).tables() == []


def test_another_look_at_the_catalog_does_not_hide_what_other_processes_change(
    settings: Settings, file: Path
) -> None:
    """A log of changes that is deleted under a process that reads it shows the tables of that
    moment for ever.
    """
    make_elsewhere(file, "a")
    first = Catalog.of(settings)
    assert first.tables() == ["silver.a", NAME]
    # Opens the file too, and closes it.
    assert Catalog.of(settings).tables() == ["silver.a", NAME]
    make_elsewhere(file, "b")
    assert first.tables() == ["silver.a", "silver.b", NAME]
    make_elsewhere(file, "c")
    assert first.tables() == ["silver.a", "silver.b", "silver.c", NAME]


def test_a_look_sees_what_a_new_spark_publishes_after_the_last_one_died(
    settings: Settings, file: Path
) -> None:
    """A Spark keeps its log of changes open, and no look that goes by another sees it: bronze's
    new rows were none.
    """
    make_elsewhere(file, "a")
    of_a_sensor_that_is_at_work = Catalog.of(settings)
    assert of_a_sensor_that_is_at_work.tables() == ["silver.a", NAME]
    # Opens the file too, and closes it; then a run ends while there is no Spark.
    assert Catalog.of(settings).tables() == ["silver.a", NAME]
    make_elsewhere(file, "b")
    with making(file, "c"):
        assert Catalog.of(settings).tables() == ["silver.a", "silver.b", "silver.c", NAME]


def test_a_file_that_is_no_database_is_named(settings: Settings, file: Path) -> None:
    file.write_text("no database" * 100)
    with pytest.raises(CatalogDamaged, match=f"{file} is damaged") as raised:
        Catalog.of(settings)
    assert "backup" in raised.value.next_step


def test_a_file_that_is_cut_short_is_named_without_the_link_of_a_library(
    settings: Settings, file: Path
) -> None:
    content = file.read_bytes()
    file.write_bytes(content[:100] + b"\1" * (len(content) - 100))
    for open_it in (lambda: check_catalog_file(file), lambda: Catalog.of(settings).load(NAME)):
        with pytest.raises(CatalogDamaged, match="is damaged") as raised:
            open_it()
        assert "http" not in str(raised.value)


def test_a_catalog_that_may_not_be_opened_is_told_from_a_damaged_one(
    settings: Settings,
) -> None:
    (settings.home / "catalog.db").mkdir(parents=True)
    with pytest.raises(SetupError, match="cannot be opened: unable to open database file"):
        Catalog.of(settings).tables()


def test_a_table_whose_metadata_file_is_gone_is_damaged_and_not_absent(
    settings: Settings, file: Path
) -> None:
    (metadata,) = (settings.home / "warehouse").rglob("*.metadata.json")
    metadata.unlink()
    with pytest.raises(
        TableDamaged, match=f"{NAME} is damaged: its metadata file {metadata} is missing"
    ):
        Catalog.of(settings).has(NAME)


def test_metadata_that_is_cut_short_is_damage_too(settings: Settings, file: Path) -> None:
    (metadata,) = (settings.home / "warehouse").rglob("*.metadata.json")
    metadata.write_text(metadata.read_text()[:50])
    with pytest.raises(
        TableDamaged, match=f"{NAME} is damaged: its metadata cannot be read"
    ) as raised:
        Catalog.of(settings).load(NAME)
    assert "http" not in str(raised.value)


def test_a_lost_catalog_is_made_again_from_the_metadata_files(
    settings: Settings, file: Path
) -> None:
    """What docs/operations.md says to do without a backup."""
    (metadata,) = (settings.home / "warehouse").rglob("*.metadata.json")
    file.unlink()
    again = SqlCatalog("lakehouse", uri=f"sqlite:///{file}")
    again.create_namespace_if_not_exists("silver")
    again.register_table(NAME, metadata.as_uri())
    assert Catalog.of(settings).has(NAME)
