"""A run that ends before its time: by Ctrl-C, or with its process."""

import os
import signal
import time

import dagster as dg
import pytest

from lakehouse.errors import UsageError
from lakehouse.orchestration.deployment import open_engine
from lakehouse.orchestration.io_manager import IcebergIOManager
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.run_in_process import materialize
from lakehouse.settings import Settings
from lakehouse.spark.processes import Process
from lakehouse_tests.processes import KILLED, Child, start, wait_for


def endless_run() -> str:
    settings = Settings.from_env()
    engine = open_engine(settings)
    began = settings.home / "began"

    @dg.asset(key=["gold", "endless"], io_manager_key="io_manager")
    def endless():
        session = engine.spark
        began.touch()
        return session.range(10**15).where("id % 7 = 8")

    definitions = dg.Definitions(
        assets=[endless], resources={"io_manager": IcebergIOManager(engine=engine, declared={})}
    )
    with open_instance(settings) as instance:
        try:
            materialize(
                definitions, instance, dg.AssetSelection.all(), tags={"test": "endless"}
            )
        except KeyboardInterrupt:
            return "interrupted"
    return "ended"


@pytest.fixture
def running(home) -> Child:
    child = start(home, endless_run)
    wait_for(lambda: (home / "began").exists() or not child.is_alive, "the run's start")
    time.sleep(3)
    assert child.is_alive, child.said
    yield child
    child.kill()


@pytest.fixture
def quick():
    @dg.asset(key=["gold", "quick"])
    def quick() -> None:
        pass

    return dg.Definitions(assets=[quick])


@pytest.mark.e2e
def test_ctrl_c_fails_the_run_and_leaves_nothing_held(running, settings):
    os.kill(running.process.pid, signal.SIGINT)

    assert running.result() == "interrupted"
    with open_instance(settings) as instance:
        (run,) = instance.get_runs()
        assert run.status == dg.DagsterRunStatus.FAILURE
        assert instance.event_log_storage.get_concurrency_run_ids() == set()


@pytest.mark.long
@pytest.mark.e2e
def test_a_run_killed_with_its_process_is_failed_by_the_next(running, settings, quick):
    running.process.kill()
    assert running.status() == KILLED

    with open_instance(settings) as instance:
        (dead,) = instance.get_runs()
        assert dead.status == dg.DagsterRunStatus.STARTED
        assert materialize(quick, instance, dg.AssetSelection.all()).success
        assert instance.get_run_by_id(dead.run_id).status == dg.DagsterRunStatus.FAILURE


@pytest.mark.long
def test_a_run_tells_its_events_as_they_happen(settings, quick, capfd):
    seen = []
    with open_instance(settings) as instance:
        materialize(quick, instance, dg.AssetSelection.all(), on_event=seen.append)

    assert [seen[0].event_type_value, seen[-1].event_type_value] == [
        "PIPELINE_START",
        "PIPELINE_SUCCESS",
    ]
    assert capfd.readouterr() == ("", "")


def test_a_run_is_on_the_instance_of_the_home_with_its_tags(settings, quick, monkeypatch):
    monkeypatch.setenv("DAGSTER_HOME", "/nowhere")
    with open_instance(settings) as instance:
        result = materialize(
            quick, instance, dg.AssetSelection.all(), tags={"lakehouse/feed": "fruits"}
        )
    with open_instance(settings) as instance:
        run = instance.get_run_by_id(result.run_id)

    assert run.tags["lakehouse/feed"] == "fruits"
    assert Process.from_tags(run.tags).pid == os.getpid()
    assert run.asset_selection == {dg.AssetKey(["gold", "quick"])}
    assert (settings.home / "dagster" / "dagster.yaml").is_file()


def test_a_dagster_yaml_that_was_changed_is_left_as_it_is(settings):
    settings.dagster_home.mkdir(parents=True)
    own = settings.dagster_home / "dagster.yaml"
    own.write_text("telemetry:\n  enabled: false\n", encoding="utf-8")
    with open_instance(settings) as instance:
        assert instance.telemetry_enabled is False

    assert own.read_text(encoding="utf-8") == "telemetry:\n  enabled: false\n"


def test_the_instance_is_set_up_as_the_design_says(settings):
    with open_instance(settings) as instance:
        assert type(instance.run_coordinator).__name__ == "QueuedRunCoordinator"
        assert instance.global_op_concurrency_default_limit == 1
        assert instance.run_monitoring_enabled
        assert not instance.telemetry_enabled


def test_an_empty_selection_is_named(settings, quick):
    with (
        open_instance(settings) as instance,
        pytest.raises(UsageError, match="selects nothing to run"),
    ):
        materialize(quick, instance, dg.AssetSelection.groups("none"))
