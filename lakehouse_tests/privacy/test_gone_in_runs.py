"""Runs of Dagster leave erased people out, count what they left out, and fail no check for it."""

from collections.abc import Mapping
from dataclasses import replace

import dagster as dg
import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.ingestion.feed_asset import feed_asset
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.orchestration.io_manager import IcebergIOManager
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.run_in_process import materialize
from lakehouse.orchestration.runs.run_result import CheckResult, RunResult
from lakehouse.quality.row_accounting import NAME
from lakehouse.quality.source_rows_check import default_checks
from lakehouse.settings import Settings
from lakehouse.tables.table import IcebergTable
from lakehouse_tests.privacy.staying_gone import (
    BY_SHOP,
    FEED,
    HEADER,
    INPUTS,
    MERGED,
    OVERWRITTEN,
    TABLES,
    VISITS,
    Visits,
)

pytestmark = pytest.mark.spark
MORNING = "2024-01-01T10:00:00Z"
ROWS = [f"1,7,a,{MORNING}", f"x,7,a,{MORNING}", f"2,8,a,{MORNING}", f"3,7,b,{MORNING}"]
SHOPS = dg.StaticPartitionsDefinition(["a", "b", "c"])
PLAIN = replace(OVERWRITTEN, name="gold.plain", rules=[])


@feed_asset(FEED, VISITS)
def landed(delivered):
    """Visits as delivered."""
    return delivered


def computed(table: IcebergTable) -> dg.AssetsDefinition:
    by_shop = SHOPS if table is BY_SHOP else None

    @iceberg_asset(table, inputs={"given": INPUTS[table]}, partitions_def=by_shop)
    def visits(given):
        return given

    return visits


@dg.asset(key=asset_key(PLAIN.name), ins={"given": dg.AssetIn(asset_key(VISITS.name))})
def plain(given):
    """Visits, cast by hand."""
    types = {column.name: column.type for column in PLAIN.columns}
    return given.selectExpr(*(f"try_cast({name} AS {types[name]}) AS {name}" for name in types))


def run(
    visits: Visits, *assets: dg.AssetsDefinition | dg.AssetSpec, partition=None
) -> RunResult:
    declared = {**TABLES, PLAIN.name: PLAIN}
    gone = replace(visits.gone, tables=declared)
    resources = {
        "settings": visits.settings,
        "io_manager": IcebergIOManager(engine=visits.engine, declared=declared, gone=gone),
    }
    checks = default_checks(assets, declared)
    definitions = dg.Definitions(assets=[*assets, *checks], resources=resources)
    with open_instance(visits.settings) as instance:
        return materialize(definitions, instance, dg.AssetSelection.all(), partition=partition)


def deliver(visits: Visits, name: str) -> None:
    path = visits.settings.home / FEED.inbox / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEADER + "".join(f"{row}\n" for row in ROWS))


@pytest.fixture
def visits(embedded_engine: Engine, settings: Settings) -> Visits:
    return Visits(embedded_engine, settings)


def of_rows(result: RunResult) -> tuple[bool, Mapping[str, int]]:
    """What the check that follows rows found."""
    check: CheckResult = next(check for check in result.checks if check.name == NAME)
    names = ("clean", "quarantined", "left_out", "lost", "erased")
    counts = {name: check.metadata.get(f"{name}_rows", 0) for name in names}
    return check.passed, {name: rows for name, rows in counts.items() if rows}


@pytest.mark.long
def test_what_a_source_has_still_is_left_out_counted_and_called_erased(visits: Visits) -> None:
    deliver(visits, "first.csv")
    run(visits, landed)
    visits.add_ann()

    merged = run(visits, computed(MERGED))
    by_shop = run(visits, computed(BY_SHOP), partition=("a", "c"))
    by_hand = run(visits, plain, dg.AssetSpec(asset_key(VISITS.name)))

    for result in (merged, by_shop):
        assert result.success
        assert of_rows(result) == (True, {"clean": 1, "erased": 3})
    assert merged.asset(MERGED.name).write.left_out_rows == 3
    assert by_shop.asset(BY_SHOP.name).write.left_out_rows == 3
    assert by_hand.success
    for table in (MERGED, BY_SHOP, PLAIN):
        assert [row[1] for row in visits.rows(table)] == ["8"]
