"""Stale partitions of a table are computed, and no row outside of them is lost."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import dagster as dg
import pytest

from lakehouse.iceberg.read.inputs import latest
from lakehouse.iceberg.rules.rows import between
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.orchestration.partitions.pending_run import PendingRun
from lakehouse.orchestration.runs.run_result import RunResult
from lakehouse.orchestration.runs.runs_for_stale_tables import INCREMENTAL, Downstream
from lakehouse.tables.table import Append, Column, IcebergTable, OverwritePartitions

DAILY = dg.DailyPartitionsDefinition("2024-01-01", end_date="2024-01-05")
REGIONS = dg.StaticPartitionsDefinition(["north", "south"])
MONDAY, LONG_AGO = date(2024, 1, 1), date(2009, 1, 1)


def tables(column_type: str) -> tuple[IcebergTable, IcebergTable]:
    columns = [Column("p", column_type), Column("v", "int")]
    raw = IcebergTable(
        "bronze.raw", "As it came.", columns, partitioning=["p"], write=Append(once_by=())
    )
    rules = [between("v", 0, 100)]
    return raw, replace(raw, name="silver.by_p", write=OverwritePartitions(by="p"), rules=rules)


class Pipeline:
    def __init__(
        self,
        engine: Any,
        build: Callable[..., RunResult],
        table: IcebergTable,
        raw: IcebergTable,
    ) -> None:
        self.engine, self.build, self.table, self.raw = engine, build, table, raw
        self.delivered: list[tuple[Any, int]] = []

    def assets(self, definition: dg.PartitionsDefinition) -> list[dg.AssetsDefinition]:
        @iceberg_asset(self.raw)
        def raw():
            return self.engine.spark.createDataFrame(
                self.delivered, f"p {self.raw.column('p').type}, v int"
            )

        @iceberg_asset(
            self.table, inputs={"raw": latest(self.raw.name, by="p")}, partitions_def=definition
        )
        def by_p(raw):
            return raw

        return [raw, by_p]

    def deliver(
        self, definition: dg.PartitionsDefinition, *rows: tuple[Any, int]
    ) -> list[PendingRun]:
        self.delivered = list(rows)
        self.run(definition, dg.AssetSelection.assets(["bronze", "raw"]))
        return self.stale(definition)

    def stale(self, definition: dg.PartitionsDefinition) -> list[PendingRun]:
        graph = dg.Definitions(assets=self.assets(definition)).resolve_asset_graph()
        declared = {table.name: table for table in (self.raw, self.table)}
        (stale,) = Downstream(graph, self.raw.name).stale_partition_runs(self.engine, declared)
        return stale

    def do(self, definition: dg.PartitionsDefinition, stale: PendingRun) -> RunResult:
        return self.run(
            definition,
            stale.selection,
            partition=stale.partitions,
            tags={**INCREMENTAL, **stale.tags},
        )

    def run(
        self, definition: dg.PartitionsDefinition, selection: dg.AssetSelection, **how: Any
    ) -> RunResult:
        result = self.build(*self.assets(definition), selection=selection, **how)
        assert result.success, result.messages
        return result

    def rows(self, table: str) -> list[tuple]:
        found = self.engine.sql(f"SELECT p, v FROM {self.engine.catalog.sql_name(table)}")
        return sorted((tuple(row) for row in found.collect()), key=str)


@pytest.fixture
def make(embedded_engine, build):
    def pipeline(column_type: str, *, quarantines: bool = True, **changes: Any) -> Pipeline:
        raw, table = tables(column_type)
        changes |= {} if quarantines else {"rules": []}
        return Pipeline(embedded_engine, build, replace(table, **changes), raw)

    return pipeline


@pytest.mark.long
def test_without_a_quarantine_a_check_fails_until_such_rows_are_gone(make, embedded_engine):
    pipeline = make("date", quarantines=False)
    (stale,) = pipeline.deliver(DAILY, (MONDAY, 1), (None, 2))

    def found(result: RunResult) -> tuple:
        (check,) = [check for check in result.checks if check.name == "has_partition"]
        return check.passed, check.severity, check.metadata["failed_rows"]

    checks = dg.AssetSelection.checks_for_assets(["silver", "by_p"])
    assert found(pipeline.do(DAILY, stale)) == (False, "ERROR", 1)
    assert pipeline.rows("silver.by_p") == [(MONDAY, 1)]
    assert found(pipeline.build(*pipeline.assets(DAILY), selection=checks)) == (
        False,
        "ERROR",
        1,
    )

    embedded_engine.sql(
        f"DELETE FROM {embedded_engine.catalog.sql_name('bronze.raw')} WHERE p IS NULL"
    )
    (stale,) = pipeline.stale(DAILY)
    assert found(pipeline.do(DAILY, stale)) == (True, "ERROR", 0)
