"""The default check that counts the outcome of each source row."""

from collections import Counter
from dataclasses import replace

import dagster as dg
import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.read.inputs import Input, incremental, latest
from lakehouse.iceberg.rules.rows import castable
from lakehouse.iceberg.values.write_result import Pin
from lakehouse.iceberg.write.user_removals import clear_quarantine
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.orchestration.io_manager import IcebergIOManager
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.run_in_process import materialize
from lakehouse.orchestration.runs.run_result import CheckResult, RunResult
from lakehouse.quality import source_rows_check
from lakehouse.quality.row_accounting import NAME
from lakehouse.quality.source_rows_check import Read, count_places, default_checks
from lakehouse.settings import Settings
from lakehouse.tables.table import (
    Append,
    Column,
    IcebergTable,
    Merge,
    OverwritePartitions,
    Versions,
)
from lakehouse_tests.iceberg.declarations import DELIVERED, PEOPLE, delivery

MERGED = IcebergTable(
    name="silver.merged",
    comment="One row for each name, with its source.",
    columns=[Column("id", "bigint"), *DELIVERED.columns[1:]],
    write=Merge(on=["name"]),
    rules=[castable("id", "bigint")],
)
COPIES = replace(DELIVERED, name="silver.copies", write=Append())
KEPT = {table.name: table for table in (DELIVERED, MERGED, COPIES, PEOPLE)}


def asset_of(table: IcebergTable, given: Input) -> dg.AssetsDefinition:
    days = dg.DailyPartitionsDefinition("2024-01-01") if table.overwritten_by else None

    @iceberg_asset(table, inputs={"delivered": given}, partitions_def=days)
    def computed(delivered):
        return delivered.where("name IS NULL OR name <> 'skip'")

    return computed


@pytest.mark.parametrize(
    ("table", "given", "names"),
    [
        (MERGED, incremental(DELIVERED.name), [NAME]),
        (COPIES, latest(DELIVERED.name), [NAME]),
        (PEOPLE, incremental(DELIVERED.name), []),
        (MERGED, incremental(PEOPLE.name), []),
        (replace(MERGED, versions=Versions("name", "id")), incremental(DELIVERED.name), [NAME]),
    ],
    ids=["incremental", "latest", "keeps no source", "reads none", "merged versions"],
)
def test_it_is_there_where_both_tables_keep_the_source(
    table: IcebergTable, given: Input, names: list[str]
) -> None:
    made = default_checks([asset_of(table, given)], KEPT)
    assert [key.name for check in made for key in check.check_keys] == names


def test_a_table_of_versions_has_the_check_that_follows_them() -> None:
    columns = [*MERGED.columns, Column("day", "date"), Column("n", "bigint")]
    parts = {"columns": columns, "partitioning": ["day"], "write": OverwritePartitions("day")}
    table = replace(MERGED, versions=Versions("id", "n"), **parts)
    (made,) = default_checks(
        [asset_of(table, latest(DELIVERED.name, by="day"))], {**KEPT, table.name: table}
    )
    assert (
        "or was superseded."
        in made.get_spec_for_check_key(next(iter(made.check_keys))).description
    )
    assert (
        default_checks(
            [asset_of(table, latest(DELIVERED.name, by="day")), made], {table.name: table}
        )
        == []
    )
    filtering = replace(table, versions=Versions("id", "n", may_leave_out=True))
    (made,) = default_checks(
        [asset_of(filtering, latest(DELIVERED.name, by="day"))], {**KEPT, table.name: filtering}
    )
    counting = made.get_spec_for_check_key(next(iter(made.check_keys))).description
    assert counting.endswith("or is counted as left out by the function.")
    assert filtering.declaration_hash == table.declaration_hash, "what it says decides no row"


def run(engine: Engine, settings: Settings, *, alone: bool = False) -> RunResult:
    asset = asset_of(MERGED, incremental(DELIVERED.name))
    checks = default_checks([asset], KEPT)
    resources = {"io_manager": IcebergIOManager(engine=engine, declared=KEPT)}
    definitions = dg.Definitions(assets=[asset, *checks], resources=resources)
    selection = (
        dg.AssetSelection.checks(*checks[0].check_keys) if alone else dg.AssetSelection.all()
    )
    with open_instance(settings) as instance:
        return materialize(definitions, instance, selection)


def counted(result: RunResult) -> tuple[bool, dict[str, int]]:
    (check,) = (check for check in result.checks if check.name == NAME)
    return check.passed, counts(check)


def counts(check: CheckResult) -> dict[str, int]:
    found = {
        name.removesuffix("_rows"): value
        for name, value in check.metadata.items()
        if name.endswith("_rows")
    }
    return {
        name: rows for name, rows in found.items() if rows and name not in ("failed", "total")
    }


@pytest.mark.long
@pytest.mark.spark
def test_each_row_is_counted_where_it_is(
    embedded_engine: Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a run those that it read; alone all of them, of however many files. One that is in two
    places fails.
    """
    engine = embedded_engine
    write(engine, DELIVERED, delivery(engine, "a", [("1", "ann"), ("x", "bob"), ("2", "skip")]))
    assert counted(run(engine, settings)) == (
        True,
        {"clean": 1, "quarantined": 1, "left_out": 1},
    )
    write(engine, DELIVERED, delivery(engine, "b", [("3", "ann")]))
    assert counted(run(engine, settings)) == (True, {"clean": 1})
    everything = {"clean": 1, "quarantined": 1, "superseded": 1, "left_out": 1}
    assert counted(run(engine, settings, alone=True)) == (True, everything)
    monkeypatch.setattr(source_rows_check, "_FEW_FILES", 1)
    assert counted(run(engine, settings, alone=True)) == (True, everything)
    held = engine.catalog.sql_name("silver.merged_quarantine")
    engine.sql(
        f"UPDATE {held} SET _source_file = 'b', _source_sha256 = 'sha-b', _source_row = 1"
    )
    passed, found = counted(run(engine, settings, alone=True))
    assert not passed and found["twice"] == 1


@pytest.mark.long
@pytest.mark.spark
def test_a_row_that_was_cleared_is_counted_as_that(
    embedded_engine: Engine, settings: Settings
) -> None:
    engine = embedded_engine
    write(engine, DELIVERED, delivery(engine, "a", [("1", "ann"), ("x", "bob"), ("y", "cat")]))
    run(engine, settings)
    assert clear_quarantine(engine, MERGED, by="somebody", why="why") == 2
    write(engine, DELIVERED, delivery(engine, "b", [("3", "cat")]))
    run(engine, settings)
    everything = {"clean": 2, "superseded": 1, "cleared": 1}
    assert counted(run(engine, settings, alone=True)) == (True, everything)


@pytest.mark.spark
def test_rows_that_are_all_there_are_looked_for_by_sums_alone(
    embedded_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where one of them is another, each row is looked for."""
    engine = embedded_engine
    landed = write(engine, DELIVERED, delivery(engine, "a", [("1", "ann"), ("2", "bob")]))
    write(engine, COPIES, lambda: engine.spark.table(engine.catalog.sql_name(DELIVERED.name)))
    reads = [Read(Pin(DELIVERED.name, landed.snapshot_id))]
    monkeypatch.setattr(source_rows_check, "_MANY_ROWS", 2)
    for few_files in (1000, 0):
        with monkeypatch.context() as patched:
            patched.delattr(source_rows_check, "_with_place")
            patched.setattr(source_rows_check, "_FEW_FILES", few_files)
            assert +Counter(count_places(engine, COPIES, reads)) == {"clean": 2}
    engine.sql(f"UPDATE {engine.catalog.sql_name(COPIES.name)} SET _source_row = 2")
    assert +Counter(count_places(engine, COPIES, reads)) == {"clean": 1, "left_out": 1}
