"""The check that no delivered row was lost, on rows that were and rows that were not."""

from typing import TYPE_CHECKING

import dagster as dg
import pytest

from lakehouse.definitions import TABLES, definitions
from lakehouse.iceberg.erasure.delete_rows import delete_rows
from lakehouse.iceberg.write.user_removals import clear_quarantine
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.run_in_process import materialize
from lakehouse.orchestration.runs.run_result import CheckResult, RunResult
from lakehouse.quality.row_accounting import NAME, OUTCOMES, Increment, account
from lakehouse.tables.person import Person
from lakehouse_tests.assets.deliveries import CLEAN, DAYS, RAW, line, put
from lakehouse_tests.assets.pipeline import Pipeline
from lakehouse_tests.conftest import settings_at
from lakehouse_tests.savepoint import Savepoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def landed(
    spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory
) -> tuple[Pipeline, Savepoint]:
    folder = tmp_path_factory.mktemp("outcomes")
    pipeline = Pipeline(settings_at(folder / "home"), "bnpl")
    rows = [line(1, DAYS[0]), line(1, DAYS[0], at="13:00"), line(2, DAYS[1]), line("", DAYS[1])]
    assert put(pipeline, "first.csv", *rows).success
    return pipeline, Savepoint(pipeline.settings.home, folder / "saved")


@pytest.fixture
def bnpl(landed: tuple[Pipeline, Savepoint]) -> Pipeline:
    pipeline, saved = landed
    saved.restore()
    return pipeline


def run_check(pipeline: Pipeline) -> RunResult:
    key = dg.AssetCheckKey(dg.AssetKey(CLEAN.split(".")), NAME)
    with open_instance(pipeline.settings) as instance:
        return materialize(
            definitions(lambda: pipeline.settings), instance, dg.AssetSelection.checks(key)
        )


def outcomes(check: CheckResult) -> dict[str, int]:
    return {
        name: check.metadata[f"{name}_rows"]
        for name in OUTCOMES
        if check.metadata[f"{name}_rows"]
    }


def test_each_row_has_an_outcome(bnpl: Pipeline) -> None:
    (check,) = run_check(bnpl).checks
    assert check.passed
    assert outcomes(check) == {"clean": 2, "quarantined": 1, "superseded": 1}


def test_a_row_that_was_cleared_from_the_quarantine_is_not_lost(bnpl: Pipeline) -> None:
    assert clear_quarantine(bnpl.engine, TABLES[CLEAN], by="somebody", why="why") == 1
    (check,) = run_check(bnpl).checks
    assert check.passed
    assert outcomes(check) == {"clean": 2, "superseded": 1}
    assert check.metadata["cleared_rows"] == 1


@pytest.mark.long
def test_a_run_looks_at_what_came(bnpl: Pipeline) -> None:
    result = put(bnpl, "late.csv", line(3, DAYS[1]), second=1)
    (check,) = (check for run in result.runs for check in run.checks if check.name == NAME)
    assert (check.passed, outcomes(check), check.metadata["partitions"]) == (
        True,
        {"clean": 1},
        [DAYS[1]],
    )


def test_a_row_that_existed_and_that_nothing_displaced_is_lost(bnpl: Pipeline) -> None:
    raw, target_before = (bnpl.snapshots()[name] for name in (RAW, CLEAN))
    assert raw is not None
    bnpl.engine.sql(f"DELETE FROM {CLEAN} WHERE transaction_id = 2")
    found = account(
        bnpl.engine,
        TABLES[RAW],
        TABLES[CLEAN],
        raw,
        computed_id=raw,
        increment=Increment(raw, target_before),
    )
    assert {outcome: rows for outcome, rows in found.rows.items() if rows} == {"lost": 1}


@pytest.mark.long
def test_rows_of_an_erased_person_are_no_lost_ones(bnpl: Pipeline) -> None:
    customer = Person("customer_id", frozenset({"7"}))
    for table in (TABLES[RAW], TABLES[CLEAN], TABLES[CLEAN].quarantine):
        assert table is not None
        delete_rows(bnpl.engine, table, [customer], "R-1")

    (check,) = run_check(bnpl).checks

    assert check.passed
    assert (outcomes(check), check.metadata["erased_rows"]) == ({}, 4)


@pytest.mark.long
def test_where_the_state_it_was_computed_from_is_gone_the_source_is_followed_as_it_is(
    bnpl: Pipeline,
) -> None:
    """As after an erasure; what is not found is yet to be computed, since all is read anew."""
    computed_from = bnpl.snapshots()[RAW]
    bnpl.engine.sql(f"DELETE FROM {RAW} WHERE transaction_id = '2'")
    raw = bnpl.engine.catalog.load(RAW)
    raw.maintenance.expire_snapshots().by_ids([computed_from]).commit()

    (check,) = run_check(bnpl).checks
    assert check.passed
    assert outcomes(check) == {"clean": 1, "quarantined": 1, "superseded": 1}

    bnpl.engine.sql(f"DELETE FROM {CLEAN} WHERE transaction_id = 1")
    (check,) = run_check(bnpl).checks
    assert (check.passed, outcomes(check)) == (True, {"quarantined": 1, "pending": 2})


def test_a_lost_row_is_told(bnpl: Pipeline) -> None:
    bnpl.engine.sql(f"DELETE FROM {CLEAN} WHERE transaction_id = 2")
    run = run_check(bnpl)
    (check,) = run.checks
    assert not check.passed
    assert run.messages == (
        (
            f"{CLEAN}: check {NAME} failed: 1 clean, 1 quarantined, 1 superseded, 0 pending, 1"
            " lost of 4 delivered rows."
        ),
    )
    assert outcomes(check) == {"clean": 1, "quarantined": 1, "superseded": 1, "lost": 1}
    assert [(row["_source_file"], row["_source_row"]) for row in check.metadata["sample"]] == [
        ("first.csv", 3)
    ]
