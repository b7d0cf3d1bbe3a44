"""A person is searched for wherever the files of a table are, or were, also outside of the home."""

from dataclasses import replace
from pathlib import Path

import pytest

from lakehouse.iceberg.upkeep import expire_snapshots
from lakehouse.settings import Settings
from lakehouse_tests.privacy.an_erasure import (
    ANNA,
    DELIVERED,
    HERS,
    NAMED,
    Home,
    expire_without_spark,
)
from lakehouse_tests.privacy.small_lakehouse import ORDERS, People

pytestmark = [pytest.mark.unit, pytest.mark.long]

ANNAS, BENS = (int(HERS), ANNA, 1.0), (8001234567, "ben@example.org", 2.0)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder outside of the home."""
    return tmp_path / "elsewhere"


@pytest.fixture
def home(settings: Settings, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home whose one table has its data outside of it, Anna's among it."""
    monkeypatch.setattr(expire_snapshots, "_call_procedure", expire_without_spark)
    orders = replace(ORDERS, properties={"write.data.path": elsewhere.as_uri()})
    home = Home(settings, {ORDERS.name: orders})
    People(home.engine, home.erasable.subjects).add(orders, ANNAS, BENS)
    return home


def move_data(home: Home) -> None:
    """Have the table write to its location from here on."""
    loaded = home.engine.catalog.load(ORDERS.name)
    with loaded.transaction() as change:
        change.remove_properties("write.data.path")
    home.tables[ORDERS.name] = ORDERS


def test_data_outside_of_the_home_is_cleaned_and_searched(home: Home, elsewhere: Path) -> None:
    erasure = home.erase(*NAMED)

    assert erasure.search_report, erasure.record.pending_removals
    assert str(elsewhere) in erasure.search_report.roots
    assert erasure.request.state == "verified", erasure.search_report.as_text()
    assert home.rows(ORDERS) == [BENS]


@pytest.mark.parametrize("now", [False, True])
def test_a_file_there_that_nothing_names_is_found_and_stays(
    home: Home, elsewhere: Path, *, now: bool
) -> None:
    lost = elsewhere / "lost.csv"
    lost.write_text(DELIVERED)

    erasure = home.erase(*NAMED, now=now)

    assert erasure.failed_search
    assert {found.file for found in erasure.failed_search.findings} == {str(lost)}
    assert erasure.request.state == "logically_deleted"
    lost.unlink()
    assert home.erase(now=now).request.state == "verified"


def test_where_the_data_was_before_is_searched_as_long_as_a_file_is_named_there(
    home: Home, elsewhere: Path
) -> None:
    move_data(home)
    (elsewhere / "lost.csv").write_text(DELIVERED)

    erasure = home.erase(*NAMED, now=True)

    assert erasure.failed_search
    assert {Path(found.file).name for found in erasure.failed_search.findings} == {"lost.csv"}
