"""How what is owed is split into runs."""

from dataclasses import replace
from datetime import date

import dagster as dg
import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, NestedField

from lakehouse.iceberg.read.inputs import latest
from lakehouse.orchestration.asset_inputs import reads_metadata
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.runs_for_stale_tables import Downstream, neighbouring
from lakehouse.runtime.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse.tables.table import Column, IcebergTable, OverwritePartitions

DAILY = dg.DailyPartitionsDefinition("2026-03-01", end_date="2026-03-07")
LATER = dg.DailyPartitionsDefinition("2026-03-03", end_date="2026-03-07")
MONTHLY = dg.MonthlyPartitionsDefinition("2026-01-01", end_date="2026-05-01")
ORDER = {f"2026-03-0{day}": day for day in range(1, 7)}
BOTH, GOLD = frozenset({"silver", "gold"}), frozenset({"gold"})


@pytest.mark.unit
def test_neighbours_are_one_run():
    owing = dict.fromkeys(["2026-03-03", "2026-03-01", "2026-03-02", "2026-03-05"], BOTH)
    assert neighbouring(owing, ORDER) == [
        ["2026-03-01", "2026-03-02", "2026-03-03"],
        ["2026-03-05"],
    ]


@pytest.mark.unit
def test_a_day_that_only_gold_owes_is_not_computed_again_in_silver():
    assert neighbouring({"2026-03-01": GOLD, "2026-03-02": BOTH}, ORDER) == [
        ["2026-03-01"],
        ["2026-03-02"],
    ]


@pytest.mark.unit
def test_nothing_owed_is_no_run():
    assert neighbouring({}, ORDER) == []


def asset(
    name: str, *reads: str, by: dg.PartitionsDefinition | None = None
) -> dg.AssetsDefinition:
    """A table of days that is computed from others, by partitions or as a whole."""
    given = {read: latest(read, by="d" if by else None) for read in reads}

    @dg.asset(
        key=asset_key(name),
        deps=[*map(asset_key, reads)],
        partitions_def=by,
        metadata=reads_metadata(given),
    )
    def compute() -> None: ...

    return compute


@pytest.fixture
def raw(settings: Settings) -> str:
    """A table of four days, that no table was computed from."""
    client = open_engine(settings).catalog.client
    client.create_namespace("bronze")
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "d"))
    table = client.create_table(
        "bronze.raw", Schema(NestedField(1, "d", DateType())), partition_spec=spec
    )
    table.append(pa.table({"d": [date(2026, 3, day) for day in range(1, 5)]}))
    return "bronze.raw"


@pytest.mark.unit
def test_tables_of_different_partitions_share_no_run(settings: Settings, raw: str) -> None:
    """Of two tables of days that begin on different days, and of what is computed from one of
    them, or from both.
    """
    assets = [
        asset(raw),
        asset("silver.days", raw, by=DAILY),
        asset("silver.later", raw, by=LATER),
        asset("silver.sums", "silver.days", by=DAILY),
        asset("gold.months", "silver.days", by=MONTHLY),
        asset("gold.of_days", "silver.sums"),
        asset("gold.of_months", "silver.days", "gold.months"),
        asset("gold.of_both", "silver.days", "silver.later"),
    ]
    downstream = Downstream(dg.Definitions(assets=assets).resolve_asset_graph(), raw)
    days = IcebergTable(
        raw, "Days.", [Column("d", "date")], OverwritePartitions(by="d"), partitioning=["d"]
    )
    declared = {name: replace(days, name=name) for name in downstream.tables}

    runs = [
        run
        for stage in downstream.stale_ranges(open_engine(settings), declared)
        for run in stage
    ]
    assert sorted((sorted(run.tables), run.partitions) for run in runs) == [
        (["gold.of_days", "silver.days", "silver.sums"], ("2026-03-01", "2026-03-04")),
        (["silver.later"], ("2026-03-03", "2026-03-04")),
    ]
    assert downstream.with_alike(["gold.months"]) == ("gold.months", "gold.of_months")
