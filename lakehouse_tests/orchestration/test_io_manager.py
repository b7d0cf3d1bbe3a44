"""Plain assets through the IO manager: frames, declared tables, partitions."""

from dataclasses import replace
from datetime import date, datetime, timedelta

import dagster as dg
import pandas as pd
from pyspark.sql import DataFrame

from lakehouse.iceberg.evolve.planning import plan_now
from lakehouse.iceberg.rules.rows import between
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.orchestration.metadata_keys import CheckMetadata
from lakehouse.tables.table import Column, IcebergTable, Overwrite, OverwritePartitions, Upkeep
from lakehouse_tests.docs.markdown import ROOT, blocks

KEY = dg.AssetKey(["silver", "numbers"])
DAYS = dg.DailyPartitionsDefinition("2024-01-01", end_date="2024-01-04")
BY_DAY = IcebergTable(
    "silver.numbers",
    "Numbers by day.",
    [Column("day", "date"), Column("v", "bigint")],
    partitioning=["day"],
    write=OverwritePartitions(by="day"),
    rules=[between("v", 0, 100, on_failure="block")],
)

WHOLE = IcebergTable(
    "silver.whole",
    "Numbers, all of them each time.",
    [Column("v", "bigint")],
    write=Overwrite(),
    rules=[between("v", 0, 100, on_failure="block")],
)


def rows(engine, query):
    return [tuple(row) for row in engine.sql(query).collect()]


def table(engine, name="silver.numbers"):
    return engine.catalog.sql_name(name)


def plain(compute, **how):
    how = {"key": KEY, "io_manager_key": "io_manager"} | how
    return dg.asset(**how)(compute)


def test_a_spark_frame_becomes_a_table_of_its_columns(build, embedded_engine):
    def numbers():
        return embedded_engine.sql("SELECT 1 AS id, 'one' AS name, map('a', 1.5D) AS marks")

    result = build(plain(numbers))

    assert result.success, result.messages
    assert rows(embedded_engine, f"SELECT * FROM {table(embedded_engine)}") == [
        (1, "one", {"a": 1.5})
    ]


def test_a_pandas_frame_becomes_a_table_of_its_columns(build, embedded_engine):
    def numbers():
        return pd.DataFrame(
            {
                "id": [1, 2],
                "name": ["one", None],
                "at": pd.to_datetime(["2024-01-01", None], utc=True),
            }
        )

    result = build(plain(numbers))

    assert result.success, result.messages
    found = rows(
        embedded_engine, f"SELECT id, name, at FROM {table(embedded_engine)} ORDER BY id"
    )
    assert found == [(1, "one", datetime(2024, 1, 1)), (2, None, None)]


def test_a_plain_asset_has_the_standard_metadata_and_its_snapshot_as_version(
    build, embedded_engine, instance
):
    result = build(plain(lambda: embedded_engine.sql("SELECT 1 AS id")))

    found = result.asset("silver.numbers").metadata
    assert (found["nr_rows"], found["dagster/row_count"], found["iceberg/added_rows"]) == (
        1,
        1,
        1,
    )
    recorded = instance.get_latest_materialization_event(KEY).asset_materialization
    assert recorded.tags["dagster/data_version"] == found["iceberg/snapshot_id"]


def test_a_table_is_read_back_as_spark_or_pandas_as_the_parameter_says(build, embedded_engine):
    seen = {}

    def as_spark(numbers: DataFrame) -> None:
        seen["spark"] = [tuple(row) for row in numbers.collect()]

    def as_pandas(numbers: pd.DataFrame) -> None:
        seen["pandas"] = numbers

    readers = [
        dg.asset(ins={"numbers": dg.AssetIn(KEY)})(reader) for reader in (as_spark, as_pandas)
    ]
    result = build(
        plain(lambda: embedded_engine.sql("SELECT 1 AS id, 'one' AS name")), *readers
    )

    assert result.success, result.messages
    assert seen["spark"] == [(1, "one")]
    assert isinstance(seen["pandas"], pd.DataFrame)
    assert seen["pandas"].to_dict("records") == [{"id": 1, "name": "one"}]


def test_a_declared_table_is_written_as_declared(build, embedded_engine):
    declared = {BY_DAY.name: BY_DAY}

    def numbers(context):
        return embedded_engine.sql(f"SELECT DATE '{context.partition_key}' AS day, 1L AS v")

    for day in ("2024-01-01", "2024-01-02", "2024-01-02"):
        result = build(plain(numbers, partitions_def=DAYS), declared=declared, partition=day)

    assert result.success, result.messages
    assert result.asset("silver.numbers").metadata["dagster/partition_row_count"] == 1
    found = rows(embedded_engine, f"SELECT day, v FROM {table(embedded_engine)} ORDER BY day")
    assert found == [(date(2024, 1, 1), 1), (date(2024, 1, 2), 1)]


def test_a_declared_table_is_audited(build, embedded_engine):
    def numbers():
        return embedded_engine.sql("SELECT DATE '2024-01-01' AS day, 101L AS v")

    result = build(
        plain(numbers, partitions_def=DAYS),
        declared={BY_DAY.name: BY_DAY},
        partition="2024-01-01",
    )

    assert not result.success
    assert (
        "rule between_v (v is at least 0 and at most 100) is broken by 1 of 1 row"
        in result.messages[0]
    )
    assert rows(embedded_engine, f"SELECT * FROM {table(embedded_engine)}") == []


def test_a_partitioned_asset_needs_a_declared_table(build, embedded_engine):
    result = build(
        plain(lambda: embedded_engine.sql("SELECT 1 AS v"), partitions_def=DAYS),
        partition="2024-01-01",
    )

    assert "no declared table is overwritten by its partitions" in result.messages[0]


def test_only_the_partitions_of_the_run_are_loaded(build, embedded_engine):
    seen = {}

    def numbers(context):
        return embedded_engine.sql(f"SELECT DATE '{context.partition_key}' AS day, 1L AS v")

    @dg.asset(ins={"numbers": dg.AssetIn(KEY)}, partitions_def=DAYS)
    def reader(context, numbers: DataFrame) -> None:
        seen[context.partition_key] = [row.day for row in numbers.collect()]

    asset = plain(numbers, partitions_def=DAYS)
    for day in ("2024-01-01", "2024-01-02"):
        result = build(asset, reader, declared={BY_DAY.name: BY_DAY}, partition=day)

    assert result.success, result.messages
    assert seen == {"2024-01-01": [date(2024, 1, 1)], "2024-01-02": [date(2024, 1, 2)]}


def test_what_is_no_frame_is_rejected(build):
    result = build(plain(lambda: [1, 2]))

    assert (
        "silver.numbers was given a list; expected a frame of Spark or pandas"
        in result.messages[0]
    )


def test_a_table_is_written_by_the_upkeep_of_its_layer_which_its_file_does_not_know(
    build, embedded_engine
):
    kept = Upkeep(metadata_files=9, refused_for=timedelta(days=3))
    as_found = replace(WHOLE, upkeep=WHOLE.upkeep.over(kept))

    @iceberg_asset(WHOLE)
    def numbers():
        return embedded_engine.sql("SELECT -1L AS v")

    result = build(numbers, declared={WHOLE.name: as_found})

    assert not result.success
    metadata = embedded_engine.catalog.load(WHOLE.name).metadata
    assert metadata.properties["write.metadata.previous-versions-max"] == "9"
    (refused,) = (ref for name, ref in metadata.refs.items() if name.startswith("refused_"))
    assert refused.max_ref_age_ms == timedelta(days=3).total_seconds() * 1000
    assert " for 3 days. " in result.messages[0]
    assert plan_now(embedded_engine, as_found).is_empty


def test_a_rule_that_the_run_does_not_select_reports_its_rows(build, embedded_engine, instance):
    """As one that was added while the run was queued."""

    @iceberg_asset(WHOLE)
    def whole():
        return embedded_engine.sql("SELECT 101L AS v")

    result = build(
        whole, selection=dg.AssetSelection.assets(["silver", "whole"]).without_checks()
    )

    (event,) = instance.all_logs(
        result.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION
    )
    evaluation = event.dagster_event.asset_check_evaluation_data
    found = CheckMetadata.from_metadata(evaluation.metadata)
    assert not result.success
    assert (evaluation.check_name, evaluation.passed) == ("between_v", False)
    assert (found.failed_rows, found.total_rows, [*found.sample]) == (1, 1, [{"v": 101}])


def test_the_plain_asset_of_the_page_on_tables_writes_its_table(build, embedded_engine):
    names = {}
    (block,) = (
        block
        for block in blocks((ROOT / "docs" / "tables.md").read_text(encoding="utf-8"))
        if "plain" in block.words
    )
    exec(block.text, names)

    def visits():
        return embedded_engine.sql("SELECT explode(array('a', 'b', 'a')) AS shop")

    result = build(plain(visits, key=dg.AssetKey(["silver", "visits"])), names["visitors"])

    assert result.success, result.messages
    visitors = table(embedded_engine, "gold.visitors")
    assert rows(embedded_engine, f"SELECT * FROM {visitors} ORDER BY shop") == [
        ("a", 2),
        ("b", 1),
    ]
