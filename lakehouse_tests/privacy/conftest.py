"""Engines without Spark, a small lakehouse that holds people on one, and a home to erase from."""

import shutil

import pytest

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.upkeep import expire_snapshots
from lakehouse.privacy.holders import find_subjects
from lakehouse.settings import Settings
from lakehouse_tests.conftest import settings_at
from lakehouse_tests.privacy.an_erasure import Home, expire_without_spark
from lakehouse_tests.privacy.small_lakehouse import (
    FRUITS,
    MAILS,
    ORDERS,
    PROFILES,
    RAW,
    SOURCES,
    TABLES,
    People,
    no_spark,
)


@pytest.fixture
def engine_without_spark(settings: Settings) -> Engine:
    """An engine on a catalog in SQLite, where no Spark can be had."""
    return Engine(Catalog.of(settings), no_spark, settings.lock_dir, masking_key=b"testing")  # type: ignore[arg-type]


@pytest.fixture
def people(engine_without_spark: Engine) -> People:
    """Customers 7, 8 and 9; 8 and 9 share an address, and 7 had another one."""
    found = People(engine_without_spark, find_subjects(TABLES, SOURCES))
    found.add(
        RAW,
        (" +007 ", "seven@old.example", "1"),
        ("7", " Seven@example.org", "2"),
        ("8", "shared@example.org", "3"),
        ("9", "shared@example.org", "4"),
        ("", "seven@example.org", "lost"),
        ("77", "other@example.org", "5"),
    )
    found.add(ORDERS, (7, "seven@old.example", 1.0))
    found.engine.catalog.load(ORDERS.name).delete("customer_id = 7")
    found.add(
        ORDERS,
        (7, "Seven@example.org", 2.0),
        (8, "shared@example.org", 3.0),
        (9, "shared@example.org", 4.0),
        (77, "other@example.org", 5.0),
    )
    found.add(PROFILES, (7, 2), (8, 1), (9, 1), (77, 1))
    found.add(
        MAILS,
        ("SEVEN@example.org", 1),
        ("shared@example.org", 2),
        ("alone@example.org", 3),
    )
    found.add(FRUITS, ("7", "seven@example.org"))
    return found


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home, and beside it a copy of all that it held at first."""
    home = Home(settings_at(tmp_path_factory.mktemp("erasure") / "home"))
    home.fill()
    shutil.copytree(home.settings.home, home.settings.home.with_name("first"))
    return home


@pytest.fixture
def there(filled: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home that holds Anna in every class of place that a test without Spark can make."""
    monkeypatch.setattr(expire_snapshots, "_call_procedure", expire_without_spark)
    home = filled.settings.home
    shutil.rmtree(home)
    # Under the same path, since tables know their files by it.
    shutil.copytree(home.with_name("first"), home)
    return filled
