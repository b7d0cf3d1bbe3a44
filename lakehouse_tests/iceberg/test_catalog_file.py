"""A missing or damaged catalog next to its tables: no table starts empty."""

from dataclasses import replace
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from lakehouse.errors import CatalogDamaged, SetupError, TableDamaged
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.settings import Settings

pytestmark = pytest.mark.unit

NAME = "silver.fruits"


@pytest.fixture
def file(settings: Settings) -> Path:
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


def test_a_catalog_that_was_begun_anew_in_silence_is_rejected_too(
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


def test_a_file_that_is_no_database_is_named(settings: Settings, file: Path) -> None:
    file.write_text("no database" * 100)
    with pytest.raises(CatalogDamaged, match=f"{file} is damaged") as raised:
        Catalog.of(settings)
    assert "backup" in raised.value.next_step


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
