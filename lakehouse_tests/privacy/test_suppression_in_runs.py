"""Runs of Dagster leave erased people out, count what they left out, and fail no check for it."""

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
from lakehouse.orchestration.runs.run_result import RunResult
from lakehouse.quality.row_accounting import NAME
from lakehouse.quality.source_rows_check import default_checks
from lakehouse.settings import Settings
from lakehouse_tests.privacy.staying_suppressed import (
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
PLAIN = replace(OVERWRITTEN, name="gold.plain", rules=[])


@feed_asset(FEED, VISITS)
def landed(delivered):
    """Visits as delivered."""
    return delivered


@iceberg_asset(MERGED, inputs={"given": INPUTS[MERGED]})
def merged(given):
    """Visits, each once."""
    return given


@dg.asset(key=asset_key(PLAIN.name), ins={"given": dg.AssetIn(asset_key(VISITS.name))})
def plain(given):
    """Visits, cast by hand."""
    types = {column.name: column.type for column in PLAIN.columns}
    return given.selectExpr(*(f"try_cast({name} AS {types[name]}) AS {name}" for name in types))


def run(visits: Visits, *assets: dg.AssetsDefinition | dg.AssetSpec) -> RunResult:
    declared = {**TABLES, PLAIN.name: PLAIN}
    suppression = replace(visits.suppression, tables=declared)
    resources = {
        "settings": visits.settings,
        "io_manager": IcebergIOManager(
            engine=visits.engine, declared=declared, suppression=suppression
        ),
    }
    checks = default_checks(assets, declared)
    definitions = dg.Definitions(assets=[*assets, *checks], resources=resources)
    with open_instance(visits.settings) as instance:
        return materialize(definitions, instance, dg.AssetSelection.all())


@pytest.fixture
def visits(embedded_engine: Engine, settings: Settings) -> Visits:
    return Visits(embedded_engine, settings)


@pytest.mark.scenario
def test_rows_of_erased_people_are_excluded_and_counted(visits: Visits) -> None:
    visits.deliver("first.csv", *ROWS)
    visits.add_ann()
    file = visits.settings.home / FEED.inbox / "second.csv"
    file.write_text(f"{HEADER}4,7,a,{MORNING}\n")

    computed = run(visits, landed, merged)
    by_hand = run(visits, plain, dg.AssetSpec(asset_key(VISITS.name)))

    assert computed.success and by_hand.success
    assert len(visits.rows(VISITS)) == len(ROWS)
    assert computed.asset(MERGED.name).write.suppressed_rows == 3
    (check,) = (check for check in computed.checks if check.name == NAME)
    assert (check.passed, check.metadata["erased_rows"]) == (True, 3)
    for table in (MERGED, PLAIN):
        assert [row[1] for row in visits.rows(table)] == ["8"]
