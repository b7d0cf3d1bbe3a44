"""Sensors and schedules that fail are told of, as long as they are on."""

import dagster as dg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.remote_origin import InProcessCodeLocationOrigin, RemoteInstigatorOrigin, RemoteRepositoryOrigin
from dagster._core.scheduler.instigation import InstigatorState, InstigatorStatus, TickData, TickStatus
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._utils.error import SerializableErrorInfo

from lakehouse_tests.monitoring.watch import Watch

NAME = "fruits_files"


class Sensor:
    """A sensor as the daemon keeps it, and its ticks."""

    def __init__(self, instance: dg.DagsterInstance, status: InstigatorStatus = InstigatorStatus.RUNNING) -> None:
        where = InProcessCodeLocationOrigin(
            LoadableTargetOrigin(module_name="lakehouse.definitions"), location_name="here"
        )
        self.instance = instance
        self.origin = RemoteInstigatorOrigin(RemoteRepositoryOrigin(where, "__repository__"), NAME)
        instance.add_instigator_state(InstigatorState(self.origin, InstigatorType.SENSOR, status))
        self.count = 0

    def tick(self, status: TickStatus) -> None:
        self.count += 1
        error = SerializableErrorInfo("lakehouse.errors.SetupError: No Java.\n", [], "SetupError", None, None)
        self.instance.create_tick(
            TickData(
                self.origin.get_id(),
                NAME,
                InstigatorType.SENSOR,
                status,
                timestamp=1_700_000_000.0 + self.count,
                error=error if status == TickStatus.FAILURE else None,
                selector_id=self.origin.get_selector().get_id(),
            )
        )


def test_a_sensor_that_fails_is_told_once_and_when_it_works_again(watch: Watch) -> None:
    sensor = Sensor(watch.instance)
    sensor.tick(TickStatus.SKIPPED)
    assert watch.says(names=[NAME]) == []
    sensor.tick(TickStatus.FAILURE)
    (alert,) = watch.look(names=[NAME])
    assert alert.title == "sensor fruits_files fails"
    assert alert.lines[:2] == (
        "SetupError: No Java.",
        "No file of feed fruits is taken by itself until it works again.",
    )
    assert "Ticks: http://127.0.0.1:3000/locations/__repository__@here/sensors/fruits_files" in alert.lines
    sensor.tick(TickStatus.FAILURE)
    sensor.tick(TickStatus.STARTED)
    assert watch.says(names=[NAME]) == []
    sensor.tick(TickStatus.SKIPPED)
    assert watch.says(names=[NAME]) == ["Over: sensor fruits_files fails"]


@pytest.mark.parametrize(("status", "names"), [(InstigatorStatus.STOPPED, [NAME]), (InstigatorStatus.RUNNING, [])])
def test_one_that_is_off_or_no_longer_there_is_left_alone(
    watch: Watch, status: InstigatorStatus, names: list[str]
) -> None:
    Sensor(watch.instance, status).tick(TickStatus.FAILURE)
    assert watch.says(names=names) == []
