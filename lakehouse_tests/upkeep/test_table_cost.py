"""Costs of a table: each stored file counts once, and prices are those of the file."""

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse.errors import UsageError
from lakehouse.iceberg.metadata.snapshots import History, Snapshot
from lakehouse.iceberg.metadata.table_locations import list_location
from lakehouse.settings import Settings
from lakehouse.upkeep.table_cost import PRICES as PRICE_FILE
from lakehouse.upkeep.table_cost import (
    Price,
    Prices,
    Storage,
    Traffic,
    measure_traffic,
    price_table,
    read_prices,
    read_storage,
)
from lakehouse.upkeep.upkeep_records import UpkeepRecord
from lakehouse_tests.iceberg.upkeep.tables import put_orphan
from lakehouse_tests.upkeep.sick_tables import NOW
from lakehouse_tests.without_spark import create_numbers, engine_without_spark

pytestmark = pytest.mark.unit


def price(dollars: float) -> Price:
    return Price(price=dollars, source="a test", as_of=NOW.date())


PRICES = Prices(
    dollars_per_gb_month=price(2),
    dollars_per_1000_puts=price(10),
    dollars_per_1000_gets=price(1),
    dollars_per_dpu_hour=price(36),
)


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


def snapshot(number: int, days_old: int, operation: str, **counts: int) -> Snapshot:
    summary = {name.replace("_", "-"): str(count) for name, count in counts.items()}
    at = NOW - timedelta(days=days_old)
    return Snapshot(number, number - 1, 0, at, operation, summary)


def history() -> History:
    snapshots = [
        snapshot(1, 40, "append", added_files_size=9000, total_files_size=9000),
        snapshot(
            2, 9, "append", added_files_size=1000, added_data_files=4, total_files_size=4000
        ),
        snapshot(
            3,
            8,
            "delete",
            added_files_size=50,
            added_delete_files=1,
            total_files_size=4050,
            total_data_files=8,
        ),
        snapshot(4, 7, "replace", added_files_size=3500, added_data_files=2),
        snapshot(5, 6, "append", total_files_size=6000, total_data_files=6),
    ]
    by_id = {kept.snapshot_id: kept for kept in snapshots}
    return History("silver.t", by_id, {"main": 5}, (), {})


def test_writes_of_runs_are_those_of_recent_snapshots_without_rewrites() -> None:
    traffic = measure_traffic(history(), None, NOW - timedelta(days=30))
    assert traffic == Traffic(written_bytes=1050, read_bytes=None, puts=4 * 3 + 4 + 1 + 2)


def test_a_read_is_a_share_of_the_snapshot_that_was_read_or_of_main() -> None:
    reads = [{"snapshot_id": 3, "value": 0.5}, {"snapshot_id": 99, "value": 1.0}]
    traffic = measure_traffic(history(), reads, NOW - timedelta(days=30))
    assert traffic.read_bytes == 2025 + 6000
    assert traffic.gets == 2 * (4 + 6)


def test_a_table_without_snapshots_costs_nothing_that_is_not_stored() -> None:
    empty = History("silver.t", {}, {}, (), {})
    reads = [{"snapshot_id": 3, "value": 0.5}]
    assert measure_traffic(empty, reads, NOW) == Traffic(read_bytes=0)


def record(run_id: str, days_old: int, step: str, **step_metrics: float) -> UpkeepRecord:
    ended_at = NOW - timedelta(days=days_old)
    return UpkeepRecord(
        "silver.t", step, "done", ended_at, "1.json", run_id, step_metrics=step_metrics
    )


def test_steps_of_a_run_cost_together_by_seconds_on_two_dpus() -> None:
    metrics = {"rewritten_files": 500, "rewritten_bytes": 10, "added_bytes": 8}
    compact = record("b", 1, "compact", seconds=60, **metrics)
    expire = record("b", 0, "expire_snapshots", seconds=40)
    earlier = record("a", 3, "remove_orphans")
    storage = Storage(0, 0, 0, None, 0)
    cost = price_table("silver.t", storage, Traffic(), [earlier, compact, expire], PRICES)
    first, second = cost.upkeep
    assert (first.run_id, first.dollars) == ("a", 0)
    assert (second.run_id, second.ended_at) == ("b", NOW)
    assert second.steps == ("compact", "expire_snapshots")
    assert (second.read_bytes, second.rewritten_bytes) == (10, 8)
    assert second.dollars == pytest.approx(2 + 1)


def test_a_month_is_the_storage_and_the_work_of_30_days() -> None:
    storage = Storage(10**9, 10**9, 0, None, 0)
    traffic = Traffic(puts=100, gets=500)
    upkeep = [record("a", 1, "compact", seconds=100)]
    cost = price_table("silver.t", storage, traffic, upkeep, PRICES)
    assert cost.storage_dollars == pytest.approx(4)
    assert cost.request_dollars == pytest.approx(1 + 0.5)
    assert cost.upkeep_dollars == pytest.approx(2)
    assert cost.dollars == pytest.approx(7.5)


def test_the_prices_of_the_package_are_those_of_s3_in_ap_southeast_5() -> None:
    assert read_prices().dollars_per_gb_month.price == 0.025


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("price = 0.44", "price =", "not a valid price file"),
        ("price = 0.44", "", "dollars_per_dpu_hour.price"),
        ("price = 0.44", "price = -1.0", "dollars_per_dpu_hour.price"),
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
        read_prices(file)
    assert str(file) in str(raised.value)
    assert message in str(raised.value)


def test_a_missing_price_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.toml"):
        read_prices(tmp_path / "none.toml")
