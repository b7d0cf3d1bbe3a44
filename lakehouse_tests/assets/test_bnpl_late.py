"""Late, corrected and moved transactions recompute only the days that they touch."""

import shutil
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest

from lakehouse.assets.bronze.bnpl_transactions_raw import TABLE as RAW
from lakehouse.iceberg.values.write_result import Outcome
from lakehouse.ingestion.feed_runs import IngestResult
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.dagster_internals import events_of_run
from lakehouse.orchestration.io_manager import IcebergIOManager
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.tables.table import IcebergTable
from lakehouse_tests.assets.deliveries import (
    CLEAN,
    DAYS,
    HEADER,
    PROFILES,
    QUARANTINE,
    SUMMARY,
    line,
    put,
)
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
def test_what_a_stopped_run_did_is_not_done_again(
    five_days: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where silver had both days when the run was stopped, gold alone is computed."""
    late = [DAYS[0], DAYS[3]]
    summary = IcebergIOManager.write

    def write(io: IcebergIOManager, table: IcebergTable, *given: Any, **named: Any) -> Outcome:
        if table.name == SUMMARY:
            raise RuntimeError("stopped")
        return summary(io, table, *given, **named)

    with monkeypatch.context() as patched:
        patched.setattr(IcebergIOManager, "write", write)
        lines = [line(100 + n, day) for n, day in enumerate(late)]
        assert not put(five_days, "late.csv", *lines, second=1).success
    done = five_days.paths(CLEAN)

    result = five_days.ingest()

    assert result.success
    assert (days_of(result, CLEAN), days_of(result, SUMMARY)) == ([], [late])
    assert five_days.paths(CLEAN) == done
    assert five_days.rows(f"SELECT sum(transactions) FROM {SUMMARY}") == [(12,)]


@pytest.mark.long
def test_a_version_with_another_day_moves_the_row(five_days: Pipeline) -> None:
    moved = line(10, DAYS[4], customer=1, created=f"{DAYS[4]}T23:00:00+08:00")
    assert days_of(put(five_days, "moved.csv", moved, second=1), CLEAN) == [[DAYS[1], DAYS[4]]]
    assert clean(five_days)[10] == (DAYS[4], "10.00")
    assert five_days.rows(
        f"SELECT CAST(last_transaction_date AS STRING) FROM {PROFILES} WHERE customer_id = 1"
    ) == [(DAYS[4],)]


@pytest.mark.long
def test_an_invalid_version_displaces_nothing_and_is_quarantined(five_days: Pipeline) -> None:
    bad = put(five_days, "bad.csv", line(10, DAYS[1], amount="-1", at="13:00"), second=1)
    assert bad.quarantined == {CLEAN: 1}
    assert clean(five_days)[10] == (DAYS[1], "10.00")
    assert five_days.rows(f"SELECT transaction_id, _reasons FROM {QUARANTINE}") == [
        ("10", ["positive_amount"])
    ]
    assert put(five_days, "late.csv", line(99, DAYS[1]), second=2).quarantined == {}


@pytest.mark.long
def test_a_corrected_row_leaves_the_quarantine(five_days: Pipeline) -> None:
    undated = line(50, "2999-01-01", customer=9, created=f"{DAYS[0]}T12:00:00+08:00")
    bad = [undated, line(51, DAYS[0], amount="1.005"), line("", DAYS[0])]
    put(five_days, "bad.csv", *bad, second=1)
    assert five_days.rows(f"SELECT count(1) FROM {QUARANTINE}") == [(3,)]
    good = [line(50, DAYS[3]), line(51, DAYS[0], amount="1.01")]
    assert put(five_days, "good.csv", *good, second=2).success
    assert five_days.rows(f"SELECT _source_file, _source_row FROM {QUARANTINE}") == [
        ("bad.csv", 3)
    ]
    assert {50, 51} <= clean(five_days).keys()


@pytest.mark.long
def test_rows_without_a_day_are_quarantined_and_touch_no_day(five_days: Pipeline) -> None:
    before = five_days.paths(CLEAN)
    assert put(
        five_days,
        "undated.csv",
        line(60, "soon", created=DAYS[0]),
        line(61, "1999-12-31"),
        second=1,
    ).success
    assert five_days.rows(f"SELECT transaction_id, _reasons FROM {QUARANTINE} ORDER BY 1") == [
        ("60", ["castable_transaction_date"]),
        ("61", ["date_in_range"]),
    ]
    assert five_days.paths(CLEAN) == before
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
