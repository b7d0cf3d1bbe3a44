"""Dagster's daemons beside `lakehouse dev`, which look again as soon as a run is asked for.

By themselves they look once in an interval. A delivered file takes two runs, and each of them
would wait for half of the queue's second, and the sensor that asks for the second one for half
of the five seconds between two rounds of all sensors.
"""

import time
from collections.abc import Sequence
from threading import Event
from typing import Any

import dagster as dg
from dagster._core.run_coordinator.queued_run_coordinator import QueuedRunCoordinator
from dagster._daemon.controller import create_daemons_from_instance
from dagster._daemon.daemon import DaemonIterator, DagsterDaemon, SensorDaemon
from dagster._daemon.freshness import FreshnessDaemon
from dagster._daemon.run_coordinator.queued_run_coordinator_daemon import (
    QueuedRunCoordinatorDaemon,
)

from lakehouse.orchestration.freshness_when_due import FreshnessWhenDue

_TICK_ENDS_SECONDS = 1.0
"""From when a sensor's run is asked for until its tick is over, and the next one may begin."""
_LOOK_SECONDS = 1.0


class PromptQueue(QueuedRunCoordinatorDaemon):
    """Begins runs that wait: once in an interval, and at once where this process asked for one,
    as sensors and schedules do.
    """

    def __init__(self, interval_seconds: float, is_asked: Event) -> None:
        """Look at a queue.

        :param is_asked: set when a run was put into it.
        """
        # What Dagster's own loop waits after a look is waited before it.
        super().__init__(interval_seconds=0)
        self._interval_seconds, self._is_asked = interval_seconds, is_asked

    def run_iteration(
        self, workspace_process_context: Any, fixed_iteration_time: float | None = None
    ) -> DaemonIterator:
        """Wait for a run, or for the interval to be over, and begin what may begin."""
        self._is_asked.wait(self._interval_seconds)
        self._is_asked.clear()
        yield from super().run_iteration(workspace_process_context, fixed_iteration_time)


class PromptSensors(SensorDaemon):
    """Begins ticks of sensors: in Dagster's rounds, and soon after a run was asked for, so that
    the sensor that did sees it end.
    """

    def __init__(self, settings: Any, is_asked: Event) -> None:
        """Begin ticks.

        :param settings: how many may go on at once, as the instance says.
        :param is_asked: set when a run was asked for.
        """
        super().__init__(settings)
        self._is_asked = is_asked

    def core_loop(
        self, workspace_process_context: Any, shutdown_event: Event
    ) -> DaemonIterator:
        """Begin ticks until the daemon is to end."""
        ends: Any = _EndOrRun(shutdown_event, self._is_asked)
        yield from super().core_loop(workspace_process_context, ends)


class _EndOrRun:
    """Stands for the event that ends a daemon: who waits for it goes on, too, soon after a run
    was asked for, and once more where the tick that asked was not over by then.
    """

    def __init__(self, ends: Event, is_asked: Event) -> None:
        self._ends, self._is_asked = ends, is_asked
        self._goes_on_again = False

    def is_set(self) -> bool:
        return self._ends.is_set()

    def wait(self, seconds: float) -> bool:
        if self._goes_on_again:
            self._goes_on_again = False
            return self._ends.wait(min(seconds, _TICK_ENDS_SECONDS))
        until = time.monotonic() + seconds
        while not self.is_set() and (rest := until - time.monotonic()) > 0:
            if self._is_asked.wait(min(rest, _LOOK_SECONDS)):
                self._is_asked.clear()
                self._goes_on_again = True
                return self._ends.wait(_TICK_ENDS_SECONDS)
        return self.is_set()


def daemons_of(instance: dg.DagsterInstance) -> Sequence[DagsterDaemon[Any]]:
    """Return Dagster's daemons of an instance, of which those of the queue and of sensors are
    told of runs that are asked for by way of the same instance, and that of freshness evaluates
    where something changed.
    """
    ours: dict[type, DagsterDaemon[Any]] = {FreshnessDaemon: FreshnessWhenDue()}
    coordinator = instance.run_coordinator
    if isinstance(coordinator, QueuedRunCoordinator):
        ours |= _prompt_daemons(instance, coordinator)
    return [ours.get(type(daemon), daemon) for daemon in create_daemons_from_instance(instance)]


def _prompt_daemons(
    instance: dg.DagsterInstance, coordinator: QueuedRunCoordinator
) -> dict[type, DagsterDaemon[Any]]:
    of_queue, of_sensors = Event(), Event()
    _tell(coordinator, of_queue, of_sensors)
    return {
        QueuedRunCoordinatorDaemon: PromptQueue(coordinator.dequeue_interval_seconds, of_queue),
        SensorDaemon: PromptSensors(instance.get_sensor_settings(), of_sensors),
    }


def _tell(coordinator: QueuedRunCoordinator, *told: Event) -> None:
    """Set events once a run was put into the queue."""
    submit = coordinator.submit_run

    def submit_run(context: Any) -> dg.DagsterRun:
        run = submit(context)
        for event in told:
            event.set()
        return run

    coordinator.submit_run = submit_run  # type: ignore[method-assign]
