"""The sensor that detects and delivers alerts, and leaves a heartbeat."""

import logging
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

import dagster as dg

from lakehouse.alerts.alert_plan import plan_alerts
from lakehouse.alerts.alert_routes import read_routes
from lakehouse.alerts.alert_state import (
    AlertState,
    StateBusy,
    read_state,
    state_lock,
    write_state,
)
from lakehouse.alerts.dispatch import Dispatcher, route_alerts
from lakehouse.alerts.failed_ticks import names_of
from lakehouse.alerts.monitor import NO_DETECTORS, Detector, run_detectors
from lakehouse.alerts.monitor_context import MonitorContext
from lakehouse.alerts.sinks import FILE, LOG, open_sinks
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.lineage.send_events import send_waiting
from lakehouse.orchestration.dagster_internals import graph_of_repository
from lakehouse.settings import Settings
from lakehouse.storage.json_files import read_json, write_json
from lakehouse.tables.feed import Feed
from lakehouse.tables.table import IcebergTable

NAME = "alerts"
HEARTBEAT_FILE = "heartbeat"
_PAUSE_SECONDS = 10
_HEARTBEAT_SECONDS = 5


@dataclass(frozen=True)
class Heartbeat:
    """What a round leaves in the home, so that another program can detect its absence."""

    at: datetime
    open: int = 0
    undelivered: int = 0
    recipients: tuple[str, ...] = ()
    """Another process can have different ones in its environment."""


def alerts_definitions(
    declared: Mapping[str, IcebergTable],
    feeds: Sequence[Feed],
    read_settings: Callable[[], Settings],
    further: Mapping[str, Detector] = NO_DETECTORS,
) -> dg.Definitions:
    """Return the sensor, which is on by default and requests no runs.

    :param further: detectors of other capabilities, by the noun that they monitor.
    """

    @dg.sensor(
        name=NAME,
        minimum_interval_seconds=_PAUSE_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            "Detects failed checks and runs, blocked or overdue tables, quarantined rows,"
            " rejected files, failing sensors and schedules, and late erasure requests. Sends"
            " one message for each, again if it grows or an error lasts, and when it is"
            " resolved. `lakehouse alerts` lists the messages."
        ),
    )
    def alerts(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        settings, repository = read_settings(), context.repository_def
        assert repository is not None
        monitor_context = MonitorContext(
            context.instance,
            graph_of_repository(repository),
            declared,
            feeds,
            settings,
            datetime.now(UTC),
            names_of(repository) - {NAME},
            open_catalog=lambda: Catalog.of(settings).with_cached_locations(declared),
        )
        state = detect_and_dispatch(monitor_context, context.log, further)
        send_waiting(settings)
        if state is None:
            return dg.SkipReason("Another process runs a round.")
        return dg.SkipReason(
            f"{len(state.open)} open incidents, {state.undelivered} undelivered messages"
        )

    return dg.Definitions(sensors=[alerts])


def detect_and_dispatch(
    context: MonitorContext,
    logger: logging.Logger,
    further: Mapping[str, Detector] = NO_DETECTORS,
) -> AlertState | None:
    """Run one round: detect, record, deliver, and write the heartbeat.

    Returns None if another process runs a round.
    """
    settings = context.settings
    try:
        with state_lock(settings, wait_seconds=0):
            state = _round(context, further, logger)
    except StateBusy:
        return None
    recipients = (FILE, LOG, *sorted(state.queues))
    heartbeat = Heartbeat(context.now, len(state.open), state.undelivered, recipients)
    write_json(settings.home / HEARTBEAT_FILE, heartbeat, Heartbeat)
    _call_heartbeat_url(settings, logger)
    return state


def _round(
    context: MonitorContext, further: Mapping[str, Detector], logger: logging.Logger
) -> AlertState:
    """Detect, record the messages, and deliver them.

    Incidents, cursors and queues are written at once, after the record: after a kill, the next
    round records the same messages, which have the same ids, and delivers the rest.
    """
    settings, now = context.settings, context.now
    routes, state = read_routes(settings), read_state(settings)
    observed = run_detectors(replace(context, state=state), further)
    plan = plan_alerts(state, observed, now, routes.repeat_after)
    sinks = open_sinks(settings, routes.urls, logger)
    for alert in plan.alerts:
        sinks[FILE].send(alert)
    cursors = {**state.cursors, **observed.cursors, "round_at": now.isoformat()}
    logged = [alert for alert in (*state.unrouted, *plan.alerts) if not alert.muted]
    state = replace(state, open=plan.open, closed=plan.closed, cursors=cursors)
    state = route_alerts(state, plan.alerts, routes)
    write_state(settings, state)
    for alert in logged:
        sinks[LOG].send(alert)
    save = partial(write_state, settings)
    return Dispatcher(state, save, logger, routes.at_once).run(sinks)


def read_heartbeat(settings: Settings) -> Heartbeat | None:
    """Return the last heartbeat, or None."""
    file = settings.home / HEARTBEAT_FILE
    return read_json(file, Heartbeat) if file.is_file() else None


def _call_heartbeat_url(settings: Settings, logger: logging.Logger) -> None:
    if not settings.heartbeat_url:
        return
    try:
        # The settings accept only http and https.
        with urllib.request.urlopen(settings.heartbeat_url, timeout=_HEARTBEAT_SECONDS):  # noqa: S310
            pass
    except (OSError, ValueError) as error:
        # Its text can contain the address, which can contain a secret.
        logger.warning(f"LAKEHOUSE_HEARTBEAT_URL was not reached: {type(error).__name__}.")
