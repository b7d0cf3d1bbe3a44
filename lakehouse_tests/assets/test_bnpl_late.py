"""Late, corrected and moved transactions recompute only the days that they touch."""

import shutil
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from lakehouse.assets.bronze.bnpl_transactions_raw import TABLE as RAW
from lakehouse.ingestion.feed_runs import IngestResult
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.dagster_internals import events_of_run
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse_tests.assets.deliveries import CLEAN, DAYS, HEADER, PROFILES, SUMMARY, line, put
from lakehouse_tests.assets.pipeline import Pipeline
from lakehouse_tests.conftest import settings_at
from lakehouse_tests.savepoint import Savepoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def landed(
    spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory
) -> tuple[Pipeline, Savepoint]:
    folder = tmp_path_factory.mktemp("five_days")
    pipeline = Pipeline(settings_at(folder / "home"), "bnpl")
    lines = [line(n * 10 + k, day, customer=n) for n, day in enumerate(DAYS) for k in range(2)]
    assert put(pipeline, "first.csv", *lines).success
    return pipeline, Savepoint(pipeline.settings.home, folder / "saved")


@pytest.fixture
def five_days(landed: tuple[Pipeline, Savepoint]) -> Pipeline:
    pipeline, saved = landed
    saved.restore()
    return pipeline


def days_of(result: IngestResult, table: str) -> list[list[str]]:
    return [
        list(asset.metadata.get("partitions", ()))
        for asset in result.assets
        if asset.table == table
    ]


def clean(pipeline: Pipeline) -> dict[int, tuple[str, str]]:
    found = pipeline.rows(f"SELECT transaction_id, transaction_date, amount FROM {CLEAN}")
    return {transaction: (str(day), str(amount)) for transaction, day, amount in found}


def files_by_day(pipeline: Pipeline, table: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in pipeline.paths(table):
        found.setdefault(path.split("transaction_date_day=")[1][:10], set()).add(path)
    return found


@pytest.mark.scenario
def test_only_the_late_day_is_written(five_days: Pipeline) -> None:
    before = {table: files_by_day(five_days, table) for table in (CLEAN, SUMMARY)}
    profiles = five_days.rows(f"SELECT * FROM {PROFILES} WHERE customer_id <> 2 ORDER BY 1")
    result = put(five_days, "late.csv", line(99, DAYS[2], customer=2), second=1)
    assert days_of(result, CLEAN) == [[DAYS[2]]]
    for table, files in before.items():
        after = files_by_day(five_days, table)
        assert after.pop(DAYS[2]) != files.pop(DAYS[2])
        assert after == files
    assert (
        five_days.rows(f"SELECT * FROM {PROFILES} WHERE customer_id <> 2 ORDER BY 1")
        == profiles
    )
    assert five_days.rows(f"SELECT transactions FROM {PROFILES} WHERE customer_id = 2") == [
        (3,)
    ]


def materialized_days(pipeline: Pipeline, run_id: str, table: str) -> list[str | None]:
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION
    with open_instance(pipeline.settings) as instance:
        events = [
            entry.get_dagster_event() for entry in events_of_run(instance, run_id, {kind})
        ]
    return [event.partition for event in events if event.asset_key == asset_key(table)]


@pytest.mark.long
def test_days_with_a_gap_are_one_run_that_leaves_the_days_between_as_they_are(
    five_days: Pipeline,
) -> None:
    late = [DAYS[0], DAYS[3]]
    before = {table: files_by_day(five_days, table) for table in (CLEAN, SUMMARY)}
    lines = [line(100 + n, day) for n, day in enumerate(late)]

    result = put(five_days, "late.csv", *lines, second=1)

    assert result.success
    assert days_of(result, CLEAN) == days_of(result, SUMMARY) == [late]
    for table, files in before.items():
        after = files_by_day(five_days, table)
        assert [day for day in DAYS if after[day] != files[day]] == late
        assert materialized_days(five_days, result.runs[-1].run_id, table) == late
    assert materialized_days(five_days, result.runs[-1].run_id, PROFILES) == [None]
    assert len(clean(five_days)) == 12
    assert five_days.ingest().runs == ()


@pytest.mark.long
def test_what_is_owed_is_told_by_the_tables(five_days: Pipeline) -> None:
    five_days.write(
        "late.csv", "\n".join([HEADER, line(99, DAYS[2]), line(98, DAYS[4])]), second=1
    )
    assert five_days.materialize(RAW.name).success
    shutil.rmtree(five_days.settings.home / "dagster")
    assert days_of(five_days.ingest(), CLEAN) == [[DAYS[2], DAYS[4]]]
    assert {98, 99} <= clean(five_days).keys()
    assert five_days.ingest().runs == ()


@pytest.mark.long
def test_days_that_bronze_lost_by_a_rollback_are_emptied(five_days: Pipeline) -> None:
    before = five_days.snapshots()[RAW.name]
    put(five_days, "another.csv", line(99, "2026-03-20"), second=1)
    assert 99 in clean(five_days)
    five_days.engine.sql(
        f"CALL lakehouse.system.rollback_to_snapshot('{RAW.name}', {before})"
    ).collect()
    assert five_days.ingest().success
    assert 99 not in clean(five_days)
    assert five_days.rows(
        f"SELECT count(1) FROM {SUMMARY} WHERE transaction_date = DATE'2026-03-20'"
    ) == [(0,)]
