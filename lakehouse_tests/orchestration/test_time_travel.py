"""An asset that reads a past state of another table: of a tag, of a moment, of a snapshot."""

import dagster as dg
import pytest

from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.inputs import as_of
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.tables.table import Column, IcebergTable, Overwrite

SOURCE = "bronze.prices"
TABLE = IcebergTable(
    "gold.prices_then", "Prices as they were.", [Column("price", "int")], write=Overwrite()
)


@pytest.fixture
def prices(embedded_engine):
    name = embedded_engine.catalog.sql_name(SOURCE)
    embedded_engine.sql(f"CREATE NAMESPACE {embedded_engine.catalog.name}.bronze")
    embedded_engine.sql(f"CREATE TABLE {name} (price int)")
    embedded_engine.sql(f"INSERT INTO {name} VALUES (1)")
    embedded_engine.sql(f"ALTER TABLE {name} CREATE TAG monthly")
    ((moment, snapshot_id),) = read_history(embedded_engine, SOURCE).log
    embedded_engine.sql(f"INSERT INTO {name} VALUES (2)")
    return {"tag": "monthly", "timestamp": moment, "snapshot_id": snapshot_id}


def read_by_asset(build, given):
    @iceberg_asset(TABLE, inputs={"prices": given})
    def prices_then(prices):
        return prices

    return build(prices_then)


def rows(engine):
    return sorted(
        row["price"]
        for row in engine.spark.table(engine.catalog.sql_name(TABLE.name)).collect()
    )


@pytest.mark.parametrize("by", ["tag", "timestamp", "snapshot_id"])
def test_an_asset_reads_what_was_there_then(build, embedded_engine, prices, by):
    result = read_by_asset(build, as_of(SOURCE, **{by: prices[by]}))

    assert result.success, result.messages
    assert rows(embedded_engine) == [1]
    pinned = result.asset(TABLE.name).metadata["iceberg/inputs"]["prices"]
    assert pinned["snapshot_id"] == str(prices["snapshot_id"])


def test_a_tag_that_is_gone_fails_the_run_and_is_named(build, instance, prices):
    result = read_by_asset(build, as_of(SOURCE, tag="yearly"))

    assert not result.success
    assert (
        "bronze.prices has no tag or branch 'yearly'; it has main, monthly."
        in result.messages[0]
    )
    assert (
        instance.get_latest_materialization_event(dg.AssetKey(["gold", "prices_then"])) is None
    )
