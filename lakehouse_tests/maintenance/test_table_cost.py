"""What a table costs: each file counted once, and money as the price file says."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse.iceberg.metadata.history import History, Snapshot
from lakehouse.iceberg.upkeep.table_files import TableFiles
from lakehouse.maintenance.table_cost import (
    Price,
    Prices,
    Storage,
    Traffic,
    cost_of_upkeep,
    measure_storage,
    measure_traffic,
    price_table,
    read_prices,
)
from lakehouse.maintenance.upkeep_record import UpkeepRecord
from lakehouse_tests.maintenance.sick_tables import NOW

pytestmark = pytest.mark.unit

SIZE_OF = {name: 10**at for at, name in enumerate("abcdefgh")}
SIZES = st.sets(st.sampled_from(sorted(SIZE_OF))).map(
    lambda names: {name: SIZE_OF[name] for name in names}
)


def price(dollars: float) -> Price:
    return Price(price=dollars, source="a test", as_of=NOW.date())


PRICES = Prices(
    dollars_per_gb_month=price(2),
    dollars_per_1000_puts=price(10),
    dollars_per_1000_gets=price(1),
    dollars_per_dpu_hour=price(36),
)


@given(SIZES, SIZES, SIZES, SIZES, st.none() | SIZES, st.floats(0, 3))
def test_parts_sum_up_to_each_file_once_and_none_is_negative(
    data, deletes, of_snapshots, metadata, listed, share
) -> None:
    storage = measure_storage(TableFiles(data, deletes, of_snapshots, metadata, listed), share)
    files = data | deletes | of_snapshots | metadata | (listed or {})
    assert storage.total_bytes == sum(files.values())
    parts = (storage.live_bytes, storage.historical_bytes, storage.deleted_bytes)
    assert min(*parts, storage.metadata_bytes, storage.orphaned_bytes or 0) >= 0
    assert (storage.orphaned_bytes is None) == (listed is None)


def test_a_file_is_of_the_first_part_that_names_it() -> None:
    files = TableFiles(
        main_data={"data": 1000},
        main_deletes={"deletes": 7},
        of_snapshots={"data": 1000, "deletes": 7, "old": 500},
        metadata={"v1.json": 30},
        listed={"data": 1000, "deletes": 7, "old": 500, "v1.json": 30, "left": 11},
    )
    assert measure_storage(files, 0.25) == Storage(
        live_bytes=750,
        historical_bytes=500,
        deleted_bytes=257,
        orphaned_bytes=11,
        metadata_bytes=30,
    )


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


def test_steps_of_a_round_cost_together_by_seconds_on_two_dpus() -> None:
    compact = record(
        "b", 1, "compact", seconds=60, rewritten_files=500, rewritten_bytes=10, added_bytes=8
    )
    expire = record("b", 0, "expire_snapshots", seconds=40)
    earlier = record("a", 3, "remove_orphans")
    first, second = cost_of_upkeep([expire, compact, earlier], PRICES)
    assert (first.run_id, first.dollars) == ("a", 0)
    assert (second.run_id, second.ended_at) == ("b", NOW)
    assert second.steps == ("compact", "expire_snapshots")
    assert (second.read_bytes, second.rewritten_bytes) == (10, 8)
    assert second.dpu_hours == pytest.approx(2 * 100 / 3600)
    assert second.dollars == pytest.approx(2 + 1)


def test_a_month_is_what_is_kept_and_what_was_done_in_30_days() -> None:
    storage = Storage(10**9, 10**9, 0, None, 0)
    traffic = Traffic(puts=100, gets=500)
    upkeep = cost_of_upkeep([record("a", 1, "compact", seconds=100)], PRICES)
    cost = price_table("silver.t", storage, traffic, upkeep, PRICES)
    assert cost.storage_dollars == pytest.approx(4)
    assert cost.request_dollars == pytest.approx(1 + 0.5)
    assert cost.upkeep_dollars == pytest.approx(2)
    assert cost.dollars == pytest.approx(7.5)


def test_the_prices_of_the_package_are_those_of_s3_in_ap_southeast_5() -> None:
    assert read_prices().dollars_per_gb_month.price == 0.025
