"""Refused rows of a table are computed again after its function was corrected."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

import dagster as dg
import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.inputs import latest, versions_of
from lakehouse.iceberg.rules.rows import castable, not_null
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.orchestration.io_manager import IcebergIOManager
from lakehouse.orchestration.runs.backfill_runs import Replayed, replay
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.run_in_process import materialize
from lakehouse.settings import Settings
from lakehouse.tables.table import (
    Append,
    Column,
    IcebergTable,
    Overwrite,
    OverwritePartitions,
    Versions,
)
from lakehouse_tests.iceberg.declarations import content, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.long]

_COLUMNS = [
    Column("k", "string"),
    Column("sent_on", "date"),
    Column("_source_file", "string"),
    Column("_source_sha256", "string"),
    Column("_source_row", "bigint"),
]
RAW = IcebergTable(
    name="bronze.raw_orders",
    comment="Orders as delivered.",
    columns=[Column("amount", "string"), *_COLUMNS],
    partitioning=["sent_on"],
    write=Append(),
)
ORDERS = IcebergTable(
    name="silver.orders",
    comment="Orders by day.",
    columns=[Column("amount", "int"), *_COLUMNS],
    partitioning=["sent_on"],
    write=OverwritePartitions(by="sent_on"),
    versions=Versions("k", ("sent_on", "_source_row")),
    rules=[castable("amount", "int"), not_null("sent_on")],
)
TOTALS = IcebergTable(
    name="gold.totals",
    comment="All that was ordered.",
    columns=[Column("total", "bigint")],
    write=Overwrite(),
)
DAYS = dg.DailyPartitionsDefinition("2024-01-01", end_date="2024-01-10")
_SCHEMA = ", ".join(f"{column.name} {column.type}" for column in RAW.columns)


def on(day: int) -> date:
    return date(2024, 1, day)


@dataclass
class Shop:
    engine: Engine
    settings: Settings
    is_corrected: bool = False
    fails: bool = False

    def define(self, _: Callable[[], Settings]) -> dg.Definitions:
        @iceberg_asset(
            ORDERS,
            inputs={"delivered": versions_of(RAW.name, by="sent_on")},
            partitions_def=DAYS,
        )
        def orders(delivered):
            if self.fails:
                raise ValueError("the function is wrong")
            return self.correct(delivered)

        @iceberg_asset(TOTALS, inputs={"orders": latest(ORDERS.name)})
        def totals(orders):
            return orders.selectExpr("sum(amount) AS total")

        raw = dg.AssetSpec(["bronze", "raw_orders"])
        tables = {table.name: table for table in (RAW, ORDERS, TOTALS)}
        io = IcebergIOManager(engine=self.engine, declared=tables)
        return dg.Definitions([raw, orders, totals], resources={"io_manager": io})

    def correct(self, delivered):
        text = "replace(amount, 'twelve', '12')" if self.is_corrected else "amount"
        others = [column.name for column in _COLUMNS]
        return delivered.selectExpr(f"{text} AS amount", *others)

    def deliver(self, *rows: tuple[str, str, date | None]) -> None:
        stamped = [(*row, "a.csv", "sha", number) for number, row in enumerate(rows, 1)]
        write(self.engine, RAW, rows_of(self.engine, _SCHEMA, stamped))
        definitions = self.define(lambda: self.settings)
        with open_instance(self.settings) as instance:
            selection = dg.AssetSelection.assets(["silver", "orders"], ["gold", "totals"])
            days = ("2024-01-01", "2024-01-09")
            assert materialize(definitions, instance, selection, partition=days).success

    def replay(self, table: IcebergTable) -> Replayed:
        return replay(self.define, self.settings, self.engine, table)

    def held(self, table: IcebergTable) -> list[str]:
        return [row[0] for row in content(self.engine, f"{table.name}_quarantine", "amount")]

    def computed_days(self, since: int) -> list[Sequence[str]]:
        history = read_history(self.engine, ORDERS.name)
        assert history.main is not None
        snapshots = history.between(since, history.main.snapshot_id) or []
        return [snapshot.commit.partitions for snapshot in snapshots if snapshot.commit]


@pytest.fixture
def shop(embedded_engine: Engine, settings: Settings) -> Shop:
    made = Shop(embedded_engine, settings)
    made.deliver(
        ("1", "a", on(1)),
        ("twelve", "b", on(2)),
        ("twelve", "c", on(3)),
        ("x", "d", on(3)),
        ("5", "e", on(5)),
        ("twelve", "f", on(8)),
    )
    return made


def main_of(shop: Shop) -> int:
    main = read_history(shop.engine, ORDERS.name).main
    assert main is not None
    return main.snapshot_id


def test_older_versions_leave_the_partition_of_a_row_that_is_accepted(
    embedded_engine: Engine, settings: Settings
) -> None:
    shop = Shop(embedded_engine, settings)
    shop.deliver(("1", "a", on(1)), ("twelve", "a", on(3)), ("2", "b", on(2)))
    assert content(shop.engine, ORDERS.name, "k", "amount") == [("a", 1), ("b", 2)]
    shop.is_corrected = True

    assert shop.replay(ORDERS).left == 1

    assert content(shop.engine, ORDERS.name, "k", "amount") == [("a", 12), ("b", 2)]


def test_the_partitions_are_computed_in_which_quarantined_rows_lie(shop: Shop) -> None:
    assert shop.held(ORDERS) == ["twelve", "twelve", "twelve", "x"]
    since, shop.is_corrected = main_of(shop), True
    done = shop.replay(ORDERS)
    assert (done.rows, done.left, done.new_rows, done.success) == (4, 3, 0, True)
    assert shop.held(ORDERS) == ["x"]
    assert content(shop.engine, ORDERS.name, "k", "amount") == [
        ("a", 1), ("b", 12), ("c", 12), ("e", 5), ("f", 12)
    ]  # fmt: skip
    assert shop.computed_days(since) == [("2024-01-02", "2024-01-03", "2024-01-08")]
    # What follows is computed along with it.
    assert content(shop.engine, TOTALS.name, "total") == [(42,)]
    again = shop.replay(ORDERS)
    assert (again.rows, again.left, again.new_rows) == (1, 0, 0)
    assert shop.held(ORDERS) == ["x"]
