"""Costs of a table: each stored file counts once, by the price of a file."""

from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse.errors import UsageError
from lakehouse.iceberg.metadata.table_locations import list_location
from lakehouse.settings import Settings
from lakehouse.upkeep.table_cost import PRICES as PRICE_FILE
from lakehouse.upkeep.table_cost import Price, Storage, read_price, read_storage
from lakehouse_tests.iceberg.upkeep.tables import put_orphan
from lakehouse_tests.upkeep.sick_tables import NOW
from lakehouse_tests.without_spark import create_numbers, engine_without_spark

pytestmark = pytest.mark.unit


def test_each_file_of_a_location_counts_once(settings: Settings) -> None:
    engine = engine_without_spark(settings)
    create_numbers(engine, "silver.t", [[1]]).overwrite(pa.table({"id": [2]}))
    orphan = put_orphan(engine, "data/killed.parquet", days_old=1, name="silver.t")

    storage = read_storage(engine, "silver.t")

    assert storage.orphaned_bytes == orphan.stat().st_size
    assert 0 < storage.live_bytes < storage.historical_bytes + storage.live_bytes
    assert storage.deleted_bytes == 0
    listed = list_location(engine.catalog.load("silver.t")).values()
    assert storage.total_bytes == sum(file.size_bytes for file in listed)


def test_a_month_costs_all_stored_bytes() -> None:
    price = Price(price=2.0, source="a test", as_of=NOW.date())
    assert Storage(10**9, 10**9, 0, None, 500).dollars(price) == pytest.approx(4)


def test_the_prices_of_the_package_are_those_of_s3_in_ap_southeast_5() -> None:
    assert read_price().price == 0.025


def test_prices_of_earlier_releases_are_ignored(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    puts = "\n[dollars_per_1000_puts]\nprice = 0.005\n"
    file.write_text(PRICE_FILE.read_text(encoding="utf-8") + puts, encoding="utf-8")
    assert read_price(file) == read_price()


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("price = 0.025", "price =", "not a valid price file"),
        ("price = 0.025", "", "dollars_per_gb_month.price"),
        ("price = 0.025", "price = -1.0", "dollars_per_gb_month.price"),
        ("as_of = 2026", 'as_of = "soon" #', "as_of"),
    ],
)
def test_an_invalid_key_of_a_price_file_is_named(
    tmp_path: Path, before: str, after: str, message: str
) -> None:
    file = tmp_path / "prices.toml"
    prices = PRICE_FILE.read_text(encoding="utf-8")
    assert before in prices
    file.write_text(prices.replace(before, after), encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        read_price(file)
    assert str(file) in str(raised.value)
    assert message in str(raised.value)


def test_a_missing_price_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.toml"):
        read_price(tmp_path / "none.toml")
