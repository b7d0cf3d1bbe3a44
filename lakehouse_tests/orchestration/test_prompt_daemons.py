"""What waits for a run goes on as soon as one is asked for."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import dagster as dg
import pytest
from dagster._core.run_coordinator import SubmitRunContext
from dagster._core.test_utils import create_run_for_test
from dagster._daemon.daemon import DagsterDaemon, SensorDaemon
from dagster._daemon.run_coordinator.queued_run_coordinator_daemon import (
    QueuedRunCoordinatorDaemon,
)

from lakehouse.orchestration.dagster_internals import runs_of_code_location
from lakehouse.orchestration.prompt_daemons import PromptQueue, PromptSensors, daemons_of

pytestmark = pytest.mark.unit

INTERVAL_SECONDS = 60
"""That no test waits for."""
QUEUE = {
    "module": "dagster",
    "class": "QueuedRunCoordinator",
    "config": {"dequeue_interval_seconds": INTERVAL_SECONDS},
}


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    overrides = {"run_coordinator": QUEUE}
    with dg.DagsterInstance.local_temp(str(tmp_path), overrides=overrides) as instance:
        yield instance


def of_kind(instance: dg.DagsterInstance, kind: type) -> DagsterDaemon[Any]:
    (daemon,) = (daemon for daemon in daemons_of(instance) if isinstance(daemon, kind))
    return daemon


def ask_for_a_run(instance: dg.DagsterInstance) -> str:
    with runs_of_code_location(instance, "shop"):
        run = create_run_for_test(instance, status=dg.DagsterRunStatus.NOT_STARTED)
    context = SubmitRunContext(run, workspace=None)  # type: ignore[arg-type]
    return instance.run_coordinator.submit_run(context).run_id


def test_each_daemon_of_dagster_is_there(instance: dg.DagsterInstance) -> None:
    kinds = [daemon.daemon_type() for daemon in daemons_of(instance)]
    assert kinds == list(instance.get_required_daemon_types())


def test_where_nothing_is_queued_the_daemons_are_dagsters_own(tmp_path: Path) -> None:
    at_once = {"module": "dagster._core.run_coordinator", "class": "DefaultRunCoordinator"}
    overrides = {"run_coordinator": at_once}
    with dg.DagsterInstance.local_temp(str(tmp_path), overrides=overrides) as instance:
        kinds = {type(daemon) for daemon in daemons_of(instance)}
    assert SensorDaemon in kinds
    assert not kinds & {PromptQueue, PromptSensors}


@pytest.mark.long
def test_the_queue_is_looked_at_as_soon_as_a_run_is_in_it(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = Event()

    def look(*_: Any) -> Iterator[None]:
        looked.set()
        yield None

    monkeypatch.setattr(QueuedRunCoordinatorDaemon, "run_iteration", look)
    queue: Any = of_kind(instance, PromptQueue)
    Thread(target=lambda: next(queue.run_iteration(None)), daemon=True).start()
    assert not looked.wait(0.2)
    run_id = ask_for_a_run(instance)
    assert looked.wait(10)
    queued = instance.get_run_by_id(run_id)
    assert queued is not None
    assert queued.status is dg.DagsterRunStatus.QUEUED


@pytest.mark.parametrize("what", ["a run is asked for", "the daemon ends"])
def test_the_next_round_of_sensors_is_soon_after(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    waited, ends = Event(), Event()

    def wait(_: Any, __: Any, shutdown: Event) -> Iterator[None]:
        assert shutdown.wait(INTERVAL_SECONDS) is (what == "the daemon ends")
        waited.set()
        yield None

    monkeypatch.setattr(SensorDaemon, "core_loop", wait)
    sensors = of_kind(instance, PromptSensors)
    Thread(target=lambda: next(sensors.core_loop(None, ends)), daemon=True).start()
    assert not waited.wait(0.2)
    if what == "the daemon ends":
        ends.set()
    else:
        ask_for_a_run(instance)
    assert waited.wait(10)
