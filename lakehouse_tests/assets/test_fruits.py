"""The fruits pipeline: files in the inbox to one row for each fruit."""

import shutil
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from lakehouse.definitions import definitions
from lakehouse.ingestion.feed_runs import IngestResult
from lakehouse.orchestration.runs.backfill_runs import backfill
from lakehouse.orchestration.runs.run_in_process import materialize
from lakehouse_tests.assets.conftest import Fruits
from lakehouse_tests.conftest import settings_at
from lakehouse_tests.savepoint import Savepoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def ingested(
    spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory
) -> tuple[Fruits, IngestResult, Savepoint]:
    folder = tmp_path_factory.mktemp("samples")
    fruits = Fruits(settings_at(folder / "home"), "fruits")
    fruits.put_samples()
    result = fruits.ingest()
    return fruits, result, Savepoint(fruits.settings.home, folder / "saved")


@pytest.fixture
def samples(ingested: tuple[Fruits, IngestResult, Savepoint]) -> tuple[Fruits, IngestResult]:
    """The pipeline with the sample files in it, as it was before any test, and what their ingest
    came to.
    """
    fruits, result, saved = ingested
    saved.restore()
    return fruits, result


@pytest.mark.scenario
def test_the_sample_files_give_180_rows_and_155_fruits_of_which_57_are_berries(samples):
    fruits, result = samples

    assert result.success
    assert (len(result.files), result.rows) == (4, 180)
    assert fruits.rows("SELECT count(*) FROM bronze.raw_fruits") == [(180,)]
    assert fruits.rows(
        "SELECT count(*), count_if(berry), count(DISTINCT fruit) FROM silver.fruits"
    ) == [(155, 57, 155)]
    assert not {"Banana", "Blueberry"} & fruits.silver().keys()


@pytest.mark.scenario
def test_each_table_reports_the_rows_that_it_was_given(samples):
    _, result = samples
    (run,) = result.runs

    assert [asset.metadata["nr_rows"] for asset in run.assets] == [180, 180]


@pytest.mark.scenario
def test_nothing_is_owed_after_an_ingest(samples):
    fruits, _ = samples
    before = fruits.snapshots()
    result = fruits.ingest()

    assert (result.success, result.runs) == (True, ())
    assert fruits.snapshots() == before


@pytest.mark.long
def test_the_same_content_put_back_changes_no_row_and_commits_nothing(samples):
    fruits, _ = samples
    before = fruits.snapshots()
    fruits.put_samples()
    result = fruits.ingest()

    assert result.success
    assert {asset.table: asset.status for asset in result.assets} == {
        "bronze.raw_fruits": "unchanged",
        "silver.fruits": "unchanged",
    }
    assert [asset.metadata["nr_rows"] for asset in result.assets] == [0, 0]
    assert fruits.snapshots() == before


@pytest.mark.scenario
def test_a_delivery_that_breaks_a_blocking_rule_is_refused(fruits):
    fruits.put("good.csv", "1,Apple,false")
    fruits.ingest()
    before, recorded = (
        fruits.snapshots()["silver.fruits"],
        fruits.materializations("silver.fruits"),
    )
    fruits.put("bad.csv", "2,Kiwi,false", "3,BANANA ,false", second=1)
    result = fruits.ingest()

    assert not result.success
    (message,) = result.messages
    assert message.startswith(
        "silver.fruits was not published: rule excluded_fruit_in_any_spelling "
        "(no spelling of a fruit that is left out remains) is broken by 1 of 2 rows, such as "
    )
    assert '"fruit": "BANANA "' in message
    assert fruits.snapshots()["silver.fruits"] == before
    assert fruits.materializations("silver.fruits") == recorded
    key = dg.AssetCheckKey(dg.AssetKey(["silver", "fruits"]), "excluded_fruit_in_any_spelling")
    newest, _ = fruits.recorded(
        lambda instance: instance.event_log_storage.get_asset_check_execution_history(
            key, limit=5
        )
    )
    assert newest.event.dagster_event.asset_check_evaluation_data.passed is False


@pytest.mark.long
def test_silver_catches_up_with_no_new_file_and_no_memory_of_events(fruits):
    """Bronze published, then the process killed, then Dagster's storage deleted."""
    fruits.put("a.csv", "1,Apple,false")
    fruits.ingest()
    fruits.put("b.csv", "2,Kiwi,false", second=1)
    _land_bronze_alone(fruits)
    shutil.rmtree(fruits.settings.dagster_home)
    result = fruits.ingest()

    assert [asset.table for asset in result.assets] == ["silver.fruits"]
    assert fruits.silver().keys() == {"Apple", "Kiwi"}


def _land_bronze_alone(fruits):
    only = dg.AssetSelection.assets(["bronze", "raw_fruits"])
    result = fruits.recorded(
        lambda instance: materialize(definitions(lambda: fruits.settings), instance, only)
    )
    assert result.success, result.messages


@pytest.mark.long
def test_a_merged_table_is_computed_in_full_by_hand(fruits):
    fruits.put("a.csv", "1,Apple,false", "2,Pear,false")
    fruits.put("b.csv", "3,Plum,false", second=1)
    assert fruits.ingest().success
    fruits.rows("DELETE FROM silver.fruits WHERE fruit IN ('Apple', 'Plum')")
    # A run that a person starts of it reads what is new, which is nothing.
    assert fruits.materialize("silver.fruits").success
    assert fruits.silver().keys() == {"Pear"}

    run = backfill(definitions, fruits.settings, "silver.fruits")

    assert run.success
    assert fruits.silver() == {"Apple": (1, False), "Pear": (2, False), "Plum": (3, False)}
