"""The fruits pipeline: files in the inbox to one row for each fruit."""

from typing import TYPE_CHECKING

import pytest

from lakehouse.definitions import definitions
from lakehouse.ingestion.feed_runs import IngestResult
from lakehouse.orchestration.runs.backfill_runs import backfill
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
    fruits, result, saved = ingested
    saved.restore()
    return fruits, result


@pytest.mark.scenario
def test_the_sample_files_give_180_rows_and_155_fruits_of_which_57_are_berries(samples):
    fruits, result = samples

    assert result.success
    assert (len(result.files), result.rows) == (4, 180)
    assert [asset.metadata["nr_rows"] for asset in result.assets] == [180, 180]
    assert fruits.rows("SELECT count(*) FROM bronze.raw_fruits") == [(180,)]
    assert fruits.rows(
        "SELECT count(*), count_if(berry), count(DISTINCT fruit) FROM silver.fruits"
    ) == [(155, 57, 155)]
    assert not {"Banana", "Blueberry"} & fruits.silver().keys()


@pytest.mark.scenario
def test_nothing_is_owed_after_an_ingest(samples):
    fruits, _ = samples
    before = fruits.snapshots()
    result = fruits.ingest()

    assert (result.success, result.runs) == (True, ())
    assert fruits.snapshots() == before


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
