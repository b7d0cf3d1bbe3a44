"""Files of another home's table in a shared folder stay."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.remove_unnamed import remove_unnamed
from lakehouse.tables.table import IcebergTable
from lakehouse_tests.conftest import settings_at
from lakehouse_tests.iceberg.erasure.people import ORDERS, content, fill, no_spark
from lakehouse_tests.iceberg.upkeep.tables import local_path, make_older

DAY = date(2024, 1, 1)
OURS = (1, 7, "anna@example.org", "ours", DAY)
THEIRS = (2, 8, "ben@example.org", "theirs", DAY)
ShareFolder = Callable[[str], IcebergTable]


@pytest.fixture
def theirs(tmp_path: Path) -> Engine:
    settings = settings_at(tmp_path / "theirs")
    return Engine(Catalog.of(settings), no_spark, settings.lock_dir, masking_key=b"testing")


@pytest.fixture
def share(engine: Engine, theirs: Engine, tmp_path: Path) -> ShareFolder:
    """Makes a table of one declaration in both homes, of which a property names one folder."""

    def make(property_name: str) -> IcebergTable:
        shared = {property_name: (tmp_path / "shared").as_uri()}
        table = replace(ORDERS, properties=shared)
        fill(theirs, table, [THEIRS])
        fill(engine, table, [OURS])
        return table

    return make


def lose_metadata(engine: Engine, *, days_old: float = 0) -> Path:
    """Leave the metadata.json of a commit that was killed beside the current one."""
    current = local_path(engine.catalog.load(ORDERS.name).metadata_location)
    lost = current.with_name("00001-lost.metadata.json")
    shutil.copy(current, lost)
    make_older(current, days_old - 1)
    make_older(lost, days_old)
    return lost


def test_no_data_of_another_home_goes_at_once(
    engine: Engine, theirs: Engine, share: ShareFolder
) -> None:
    table = share("write.data.path")

    (result,) = remove_unnamed(engine, [table.name])

    assert result.outcome == "skipped", result
    assert content(theirs, table) == [THEIRS]


def test_of_shared_metadata_our_own_alone_goes_at_once(
    engine: Engine, theirs: Engine, share: ShareFolder
) -> None:
    table = share("write.metadata.path")
    lost = lose_metadata(engine)

    (result,) = remove_unnamed(engine, [table.name])

    assert (result.outcome, result.step_metrics["removed_files"]) == ("done", 1)
    assert not lost.exists()
    assert content(theirs, table) == [THEIRS]
    assert content(engine, table) == [OURS]


def test_nothing_goes_from_a_location_of_two_homes(
    engine: Engine, theirs: Engine, tmp_path: Path
) -> None:
    table = replace(ORDERS, location=(tmp_path / "shared").as_uri())
    fill(theirs, table, [THEIRS])
    fill(engine, table, [OURS])

    (result,) = remove_unnamed(engine, [table.name])

    assert result.outcome == "failed"
    assert "has its metadata in the folder of this one" in result.reason
    assert content(theirs, table) == [THEIRS]
