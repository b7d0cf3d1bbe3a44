"""The sensor that runs the detectors, dispatches alerts, and leaves a sign that it did."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from types import MappingProxyType

import dagster as dg

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.lineage.open_lineage import send_waiting
from lakehouse.monitoring.alert_settings import read_routes
from lakehouse.monitoring.alert_state import (
    AlertState,
    StateBusy,
    read_state,
    state_lock,
    write_state,
)
from lakehouse.monitoring.detectors.failed_ticks import names_of
from lakehouse.monitoring.detectors.monitor_context import MonitorContext
from lakehouse.monitoring.dispatch import Dispatcher, enqueue_alerts
from lakehouse.monitoring.heartbeat import Heartbeat, beat
from lakehouse.monitoring.monitor import Detector, run_detectors
from lakehouse.monitoring.open_alerts import show_open_alerts
from lakehouse.monitoring.silences import silence_texts
from lakehouse.monitoring.sinks import open_sinks
from lakehouse.orchestration.dagster_internals import graph_of_repository
from lakehouse.settings import Settings
from lakehouse.tables.feed import Feed
from lakehouse.tables.table import IcebergTable

NAME = "alerts"
_PAUSE_SECONDS = 10
_NO_FURTHER: Mapping[str, Detector] = MappingProxyType({})


def alerts_definitions(
    declared: Mapping[str, IcebergTable],
    feeds: Sequence[Feed],
    read_settings: Callable[[], Settings],
    further: Mapping[str, Detector] = _NO_FURTHER,
) -> dg.Definitions:
    """Make the sensor; it is on by itself, and starts no runs.

    :param further: detectors of concerns that know of monitoring, by what they monitor.
    """

    looks = _Looks(declared, feeds, further)

    @dg.sensor(
        name=NAME,
        minimum_interval_seconds=_PAUSE_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            "Detects failed checks and runs, tables that are blocked or overdue, rejected files,"
            " sensors and schedules that fail, and requests to erase people that are late;"
            " notifies people of each, again where it grows or an error lasts, and when it is"
            " resolved. `lakehouse alerts` lists the messages."
        ),
    )
    def alerts(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        return looks.look(context, read_settings())

    return dg.Definitions(sensors=[alerts])


@dataclass(frozen=True)
class _Looks:
    """What the sensor looks at, and by what."""

    declared: Mapping[str, IcebergTable]
    feeds: Sequence[Feed]
    further: Mapping[str, Detector]

    def look(self, context: dg.SensorEvaluationContext, settings: Settings) -> dg.SkipReason:
        """Run the detectors once, and say what is open."""
        repository = context.repository_def
        assert repository is not None
        monitor_context = MonitorContext(
            context.instance,
            graph_of_repository(repository),
            self.declared,
            self.feeds,
            settings,
            datetime.now(UTC),
            names_of(repository) - {NAME},
            open_catalog=cache(
                lambda: Catalog.of(settings).with_cached_locations(self.declared)
            ),
        )
        state = detect_and_dispatch(monitor_context, context.log, self.further)
        send_waiting(settings)
        if state is None:
            return dg.SkipReason("Another process monitors.")
        return dg.SkipReason(
            f"{len(state.open)} incidents are open; {state.undelivered} messages wait for a"
            " sink."
        )


def detect_and_dispatch(
    monitor_context: MonitorContext,
    logger: logging.Logger,
    further: Mapping[str, Detector] = _NO_FURTHER,
) -> AlertState | None:
    """Run the detectors once, send what is due, and leave a sign of life; None where another
    process does it.

    What was observed and what is to be sent of it are kept in one write, before anything is
    sent: killed in between, a later round sends it.
    """
    settings = monitor_context.settings
    try:
        with state_lock(settings, wait_seconds=0):
            state = _round(monitor_context, logger, further)
    except StateBusy:
        return None
    heartbeat = Heartbeat(
        monitor_context.now, len(state.open), state.undelivered, tuple(sorted(state.queues))
    )
    problem = beat(settings, heartbeat)
    if problem:
        logger.warning(problem)
    return state


def _round(
    monitor_context: MonitorContext, logger: logging.Logger, further: Mapping[str, Detector]
) -> AlertState:
    detect = partial(run_detectors, further=further)
    return _shown(monitor_context, _dispatch(monitor_context, detect, logger), logger)


def _dispatch(
    monitor_context: MonitorContext, detect: Detector, logger: logging.Logger
) -> AlertState:
    settings, routes = monitor_context.settings, read_routes(monitor_context.settings)
    state = read_state(settings)
    observed = detect(replace(monitor_context, state=state))
    state = enqueue_alerts(
        state, observed, monitor_context.now, routes, silence_texts(settings)
    )
    write_state(settings, state)
    dispatcher = Dispatcher(state, lambda now: write_state(settings, now), logger)
    return dispatcher.run(open_sinks(settings, routes.urls, logger))


def _shown(context: MonitorContext, state: AlertState, logger: logging.Logger) -> AlertState:
    """Show with each table what is open of it; that it cannot be shown stops no alert, and is
    tried again in the next round.
    """
    try:
        shown = show_open_alerts(context.instance, context.declared, state)
    except Exception as error:
        logger.warning(f"What is open is not shown with the tables: {error}")
        return state
    if shown is not state:
        write_state(context.settings, shown)
    return shown
