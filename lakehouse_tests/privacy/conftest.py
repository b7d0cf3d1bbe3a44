"""Engines without Spark, and a small lakehouse that holds people on one."""

import pytest

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.privacy.holders import find_subjects
from lakehouse.settings import Settings
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
