"""Sensors and schedules that fail are told of, as long as they are on."""

import dagster as dg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.remote_origin import (
    InProcessCodeLocationOrigin,
    RemoteInstigatorOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    TickData,
    TickStatus,
)
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._utils.error import SerializableErrorInfo

from lakehouse_tests.monitoring.watch import Watch

NAME = "fruits_files"
FAILED = SerializableErrorInfo(
    "lakehouse.errors.SetupError: No Java.\n", [], "SetupError", None, None
)


class Sensor:
    """A sensor as the daemon keeps it, and its ticks."""

    def __init__(
        self, instance: dg.DagsterInstance, status: InstigatorStatus = InstigatorStatus.RUNNING
    ) -> None:
        where = InProcessCodeLocationOrigin(
            LoadableTargetOrigin(module_name="lakehouse.definitions"), location_name="here"
        )
        self.instance = instance
        self.origin = RemoteInstigatorOrigin(
            RemoteRepositoryOrigin(where, "__repository__"), NAME
        )
        instance.add_instigator_state(
            InstigatorState(self.origin, InstigatorType.SENSOR, status)
        )
        self.count = 0

    def tick(self, status: TickStatus, error: SerializableErrorInfo = FAILED) -> None:
        self.count += 1
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


@pytest.mark.long
def test_a_sensor_that_fails_is_told_once_and_when_it_works_again(watch: Watch) -> None:
    sensor = Sensor(watch.instance)
    sensor.tick(TickStatus.SKIPPED)
    assert watch.says(names=[NAME]) == []
    sensor.tick(TickStatus.FAILURE)
    (alert,) = watch.look(names=[NAME])
    assert alert.title == "sensor fruits_files fails"
    assert alert.lines[:2] == (
        "SetupError: No Java.",
        "No file of feed fruits is ingested by itself until it works again.",
    )
    assert (
        "Ticks: http://127.0.0.1:3000/locations/__repository__@here/sensors/fruits_files"
        in alert.lines
    )
    sensor.tick(TickStatus.FAILURE)
    sensor.tick(TickStatus.STARTED)
    assert watch.says(names=[NAME]) == []
    sensor.tick(TickStatus.SKIPPED)
    assert watch.says(names=[NAME]) == ["Resolved: sensor fruits_files fails"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Could not reach user code server. gRPC Error code: UNAVAILABLE", []),
        (
            "The sensor tick timed out due to taking longer than 60 seconds",
            ["sensor fruits_files fails"],
        ),
    ],
)
def test_a_tick_that_reached_no_code_is_passed_over_and_one_that_took_too_long_is_not(
    watch: Watch, said: str, told: list[str]
) -> None:
    sensor = Sensor(watch.instance)
    sensor.tick(TickStatus.SKIPPED)
    sensor.tick(
        TickStatus.FAILURE,
        _unreachable("Unable to reach the user code server.", _unreachable(said)),
    )
    assert watch.says(names=[NAME]) == told


def _unreachable(
    said: str, cause: SerializableErrorInfo | None = None
) -> SerializableErrorInfo:
    kind = "DagsterUserCodeUnreachableError"
    return SerializableErrorInfo(
        f"dagster._core.errors.{kind}: {said}\n", [], kind, cause, None
    )


@pytest.mark.parametrize(
    ("status", "names"), [(InstigatorStatus.STOPPED, [NAME]), (InstigatorStatus.RUNNING, [])]
)
def test_one_that_is_off_or_no_longer_there_is_left_alone(
    watch: Watch, status: InstigatorStatus, names: list[str]
) -> None:
    Sensor(watch.instance, status).tick(TickStatus.FAILURE)
    assert watch.says(names=names) == []
