"""The metrics of a run are recorded once, without Spark."""

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from lakehouse.definitions import TABLES, definitions
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.quality.metrics.metrics_sensor import RECORDED, Recorder, unrecorded
from lakehouse.tables.table import Append
from lakehouse_tests.assets.pipeline import Pipeline
from lakehouse_tests.conftest import settings_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

METRICS = TABLES["monitoring.data_quality_metrics"]


def no_spark() -> None:
    raise AssertionError("Spark was started")


def kept(pipeline: Pipeline) -> list[dict]:
    return pipeline.engine.catalog.load(METRICS.name).scan().to_arrow().to_pylist()


@pytest.fixture(scope="module")
def fruits(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    pipeline = Pipeline(settings_at(tmp_path_factory.mktemp("metrics") / "home"), "fruits")
    pipeline.write(
        "a.csv", "id,fruit,berry\n1,Apple,false\n2,Grape,true\n3,Kiwi,true\nfour,Fig,false\n"
    )
    assert pipeline.ingest().success
    return pipeline


def values(pipeline: Pipeline, table: str) -> dict[str, float]:
    return {row["metric"]: row["value"] for row in kept(pipeline) if row["table_name"] == table}


def test_an_ingest_records_what_it_measured(fruits: Pipeline) -> None:
    bronze, silver = values(fruits, "bronze.raw_fruits"), values(fruits, "silver.fruits")

    assert bronze.pop("failed_fraction.no_anomaly") == 0
    assert bronze == {"record_count": 4, "daily_growth": 4, "nr_rows": 4}
    assert silver["record_count"] == silver["daily_growth"] == 3
    assert silver["nr_rows"] == 4
    assert silver["failed_fraction.castable_id"] == 0.25
    assert silver["failed_fraction.excluded_fruit"] == 0


def test_a_run_is_one_append_however_often_it_is_recorded(fruits: Pipeline) -> None:
    before = read_history(fruits.engine, METRICS.name).main.snapshot_id
    with open_instance(fruits.settings) as instance:
        run = instance.get_runs(limit=1)[0]
        assert RECORDED in run.tags
        assert Recorder(fruits.engine, METRICS).record(instance, run.run_id) > 0

    assert read_history(fruits.engine, METRICS.name).main.snapshot_id == before
    per_run = Counter((row["run_id"], row["table_name"], row["metric"]) for row in kept(fruits))
    assert set(per_run.values()) == {1}


def test_recording_starts_no_spark(fruits: Pipeline) -> None:
    engine = replace(fruits.engine, session=no_spark)
    with open_instance(fruits.settings) as instance:
        run = instance.get_runs(limit=1)[0]
        other = replace(METRICS, name="monitoring.again")
        assert Recorder(engine, other).record(instance, run.run_id) > 0

    assert engine.catalog.load(other.name).scan().to_arrow().num_rows == len(kept(fruits))


def test_runs_that_no_command_recorded_are_swept_up(fruits: Pipeline) -> None:
    """As those of the UI, and of a command that was killed."""
    here = definitions(lambda: fruits.settings)
    sensor = here.get_repository_def().get_sensor_def("run_metrics")
    with open_instance(fruits.settings) as instance:
        job = here.resolve_job_def("ingest_fruits")
        ran = job.execute_in_process(instance=instance, run_config={})
        assert unrecorded(instance, 10) == [ran.run_id]
        message = [sensor(dg.build_sensor_context(instance)) for _ in range(2)]

        assert "1 of 1" in message[0].skip_message
        assert message[1].skip_message.startswith("The metrics of all finished runs")
    assert ran.run_id in {row["run_id"] for row in kept(fruits)}


def test_a_run_that_is_executed_again_is_recorded_too(fruits: Pipeline) -> None:
    """The UI and Dagster's retries give it all tags of the run before."""
    job = definitions(lambda: fruits.settings).resolve_job_def("ingest_fruits")
    with open_instance(fruits.settings) as instance:
        first = instance.get_run_by_id(job.execute_in_process(instance=instance).run_id)
        recorder = Recorder(fruits.engine, METRICS)
        recorder.record(instance, first.run_id)
        assert unrecorded(instance, 10) == []
        before = instance.get_run_by_id(first.run_id)
        again = instance.create_run_for_job(
            job,
            tags={**before.tags},
            parent_run_id=first.run_id,
            root_run_id=first.run_id,
            status=dg.DagsterRunStatus.FAILURE,
        )

        assert unrecorded(instance, 10) == [again.run_id]
        recorder.record(instance, again.run_id)
        assert unrecorded(instance, 10) == []


def test_an_error_is_logged_and_fails_no_run(
    fruits: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    broken = Recorder(fruits.engine, replace(METRICS, write=Append(once_by=())))
    with open_instance(fruits.settings) as instance:
        run = instance.get_runs()[-1]
        assert not broken.try_to_record(instance, run.run_id)
    assert "are not recorded yet" in caplog.text
