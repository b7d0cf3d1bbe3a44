"""Running sensors and schedules whose last tick failed."""

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

from lakehouse_tests.alerts.watch import Watch

NAME = "fruits_files"
FAILED = SerializableErrorInfo(
    "lakehouse.errors.SetupError: No Java.\n", [], "SetupError", None, None
)


class Sensor:
    """A sensor and its ticks in Dagster's storage."""

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


def test_a_failing_sensor_sends_one_message(watch: Watch) -> None:
    sensor = Sensor(watch.instance)
    sensor.tick(TickStatus.FAILURE)
    (alert,) = watch.round(names=[NAME])
    assert alert.title == "sensor fruits_files fails"
    assert alert.lines[:2] == (
        "SetupError: No Java.",
        "Files of feed fruits are not ingested automatically until it succeeds.",
    )
    link = "http://127.0.0.1:3000/locations/__repository__@here/sensors/fruits_files"
    assert f"Ticks: {link}" in alert.lines
    sensor.tick(TickStatus.FAILURE)
    sensor.tick(TickStatus.STARTED)
    assert watch.titles(names=[NAME]) == []


def test_a_sensor_that_succeeds_again_is_resolved(watch: Watch) -> None:
    sensor = Sensor(watch.instance)
    sensor.tick(TickStatus.FAILURE)
    watch.round(names=[NAME])
    sensor.tick(TickStatus.SKIPPED)
    assert watch.titles(names=[NAME]) == ["Resolved: sensor fruits_files fails"]


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("Could not reach user code server. gRPC Error code: UNAVAILABLE", []),
        (
            "The sensor tick timed out due to taking longer than 60 seconds",
            ["sensor fruits_files fails"],
        ),
    ],
)
def test_a_tick_that_did_not_reach_the_code_server_is_skipped(
    watch: Watch, text: str, titles: list[str]
) -> None:
    sensor = Sensor(watch.instance)
    sensor.tick(TickStatus.SKIPPED)
    sensor.tick(
        TickStatus.FAILURE,
        _unreachable("Unable to reach the user code server.", _unreachable(text)),
    )
    assert watch.titles(names=[NAME]) == titles


def test_ticks_that_did_not_reach_the_code_server_resolve_nothing(watch: Watch) -> None:
    sensor = Sensor(watch.instance)
    sensor.tick(TickStatus.FAILURE)
    watch.round(names=[NAME])
    for _ in range(5):
        sensor.tick(TickStatus.FAILURE, _unreachable("Could not reach user code server."))
    assert watch.titles(names=[NAME]) == []


def _unreachable(
    text: str, cause: SerializableErrorInfo | None = None
) -> SerializableErrorInfo:
    kind = "DagsterUserCodeUnreachableError"
    return SerializableErrorInfo(
        f"dagster._core.errors.{kind}: {text}\n", [], kind, cause, None
    )


@pytest.mark.parametrize(
    ("status", "names"), [(InstigatorStatus.STOPPED, [NAME]), (InstigatorStatus.RUNNING, [])]
)
def test_a_stopped_or_removed_sensor_is_no_incident(
    watch: Watch, status: InstigatorStatus, names: list[str]
) -> None:
    Sensor(watch.instance, status).tick(TickStatus.FAILURE)
    assert watch.titles(names=names) == []
