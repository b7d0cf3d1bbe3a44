"""What was computed by older code is told by the table, and just that is computed again."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date

import dagster as dg
import pytest

from lakehouse.errors import UsageError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.kept_watermarks import carry_watermarks
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.inputs import incremental, latest
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.orchestration.dagster_internals import asset_graph
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.orchestration.io_manager import IcebergIOManager
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.older_code import TableCode, backfill_older, code_of
from lakehouse.orchestration.runs.run_in_process import materialize
from lakehouse.settings import Settings
from lakehouse.tables.table import Append, Column, IcebergTable, Merge, OverwritePartitions
from lakehouse_tests.iceberg.declarations import content, rows_of

RAW = IcebergTable(
    name="bronze.raw_orders",
    comment="Orders as delivered.",
    columns=[Column("k", "string"), Column("sent_on", "date")],
    partitioning=["sent_on"],
    write=Append(once_by=()),
)
ORDERS = IcebergTable(
    name="silver.orders",
    comment="Orders by day.",
    columns=[Column("k", "string"), Column("sent_on", "date")],
    partitioning=["days(sent_on)"],
    write=OverwritePartitions(by="sent_on"),
)
MERGED = IcebergTable(
    name="silver.merged",
    comment="One row for each key.",
    columns=[Column("k", "string"), Column("shown", "string")],
    write=Merge(on=["k"]),
)
LOGGED = IcebergTable(
    name="silver.logged",
    comment="Keys as they came.",
    columns=[Column("k", "string")],
    write=Append(once_by=("k",)),
)
DAYS = dg.DailyPartitionsDefinition("2024-01-01", end_date="2024-01-10")
TABLES = {table.name: table for table in (RAW, ORDERS, MERGED, LOGGED)}


@dataclass
class Shop:
    engine: Engine
    settings: Settings
    shown: str = "k"
    runs: list[str] = field(default_factory=list)

    def define(self, _: Callable[[], Settings]) -> dg.Definitions:
        shown = self.shown

        @iceberg_asset(
            ORDERS,
            inputs={"raw": latest(RAW, by="sent_on")},
            partitions_def=DAYS,
            code_version=shown,
        )
        def orders(raw):
            return raw.selectExpr(f"{shown} AS k", "sent_on")

        @iceberg_asset(MERGED, inputs={"raw": incremental(RAW)}, code_version=shown)
        def merged(raw):
            return raw.selectExpr("k", f"{shown} AS shown")

        @iceberg_asset(LOGGED, inputs={"raw": incremental(RAW)})
        def logged(raw):
            return raw.selectExpr(f"{shown} AS k")

        raw = dg.AssetSpec(["bronze", "raw_orders"])
        io = IcebergIOManager(engine=self.engine, declared=TABLES)
        return dg.Definitions([raw, orders, merged, logged], resources={"io_manager": io})

    def deliver(self, *rows: tuple[str, date]) -> None:
        write(self.engine, RAW, rows_of(self.engine, "k string, sent_on date", rows))

    def compute(self, table: IcebergTable, *days: str) -> dg.AssetMaterialization:
        key = dg.AssetKey(table.name.split("."))
        with open_instance(self.settings) as instance:
            definitions = self.define(lambda: self.settings)
            partition = (days[0], days[-1]) if days else None
            selection = dg.AssetSelection.assets(key)
            assert materialize(definitions, instance, selection, partition=partition).success
            event = instance.get_latest_materialization_event(key)
            assert event and event.asset_materialization
            return event.asset_materialization

    def code(self, table: IcebergTable) -> TableCode:
        graph = asset_graph(self.define(lambda: self.settings))
        node = graph.get(dg.AssetKey(table.name.split(".")))
        assert node.code_version
        history = read_history(self.engine, table.name)
        catalog = self.engine.catalog
        return code_of(catalog, table, history, node.code_version, node.partitions_def)

    def backfill(self, table: IcebergTable) -> int:
        runs = backfill_older(self.define, self.settings, self.engine, table)
        assert all(run.success for run in runs)
        return len(runs)


@pytest.fixture
def shop(embedded_engine: Engine, settings: Settings) -> Shop:
    return Shop(embedded_engine, settings)


def on(day: int) -> date:
    return date(2024, 1, day)


def test_partitions_of_older_code_that_hold_rows_are_computed_again(shop: Shop) -> None:
    shop.deliver(("a", on(1)), ("b", on(3)), ("c", on(4)), ("d", on(6)))
    shop.compute(ORDERS, "2024-01-01", "2024-01-06")
    assert shop.code(ORDERS) == TableCode()

    shop.shown = "upper(k)"
    shop.compute(ORDERS, "2024-01-03")
    older = frozenset({"2024-01-01", "2024-01-04", "2024-01-06"})
    assert shop.code(ORDERS) == TableCode(True, False, older)
    # As upkeep does before it expires what earlier commits said.
    assert carry_watermarks(shop.engine, ORDERS.name)
    assert shop.code(ORDERS).older_partitions == older

    # Gaps between them are no boundary.
    assert shop.backfill(ORDERS) == 1
    assert content(shop.engine, ORDERS.name, "k") == [("A",), ("B",), ("C",), ("D",)]
    assert shop.code(ORDERS) == TableCode()
    assert shop.backfill(ORDERS) == 0


@pytest.mark.long
def test_a_merged_table_holds_rows_of_older_code_until_all_of_it_is_computed(
    shop: Shop,
) -> None:
    shop.deliver(("a", on(1)))
    first = shop.compute(MERGED).tags["dagster/code_version"]
    shop.shown = "upper(k)"
    shop.deliver(("b", on(2)))
    # Only what is new was computed: Dagster goes on to show it as of other code.
    both = shop.compute(MERGED).tags["dagster/code_version"]
    assert first in both.split("+")
    assert shop.code(MERGED).is_older

    assert shop.backfill(MERGED) == 1
    assert content(shop.engine, MERGED.name, "shown") == [("A",), ("B",)]
    assert (shop.code(MERGED), shop.backfill(MERGED)) == (TableCode(), 0)
    # Other code that comes to the same changes no row, and is not found again.
    shop.shown = "upper(upper(k))"
    main = read_history(shop.engine, MERGED.name).main
    assert (shop.code(MERGED).is_older, shop.backfill(MERGED)) == (True, 1)
    assert read_history(shop.engine, MERGED.name).main == main
    assert (shop.code(MERGED), shop.backfill(MERGED)) == (TableCode(), 0)


def test_what_is_appended_stays_as_it_was_computed(shop: Shop) -> None:
    with pytest.raises(UsageError, match="stays as it was computed"):
        shop.backfill(LOGGED)
    with pytest.raises(UsageError, match="is computed from no other table"):
        shop.backfill(RAW)
