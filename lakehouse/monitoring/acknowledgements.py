"""What a person does about an open incident: acknowledge it, or close it."""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from lakehouse.errors import UsageError
from lakehouse.monitoring.alert_log import read_alerts
from lakehouse.monitoring.alert_state import AlertState, read_state, state_lock, write_state
from lakehouse.monitoring.dispatch import Dispatcher, record_resolved
from lakehouse.monitoring.incidents import Incident, Resolved
from lakehouse.monitoring.silences import silence_texts
from lakehouse.monitoring.sinks import FILE, FILE_NAME, FileSink
from lakehouse.orchestration.alert import Alert
from lakehouse.settings import Settings

_LOGGER = logging.getLogger("lakehouse.alerts")
# A round sends for half a minute at most.
_ROUND_SECONDS = 60


def find_alert(settings: Settings, begin: str) -> Alert:
    """Return the message of an id, or of how its id begins.

    :raises UsageError: when there is none, or more than one.
    """
    alerts = {}
    for alert in read_alerts(settings):
        if alert.alert_id.startswith(begin.lower()):
            alerts[alert.alert_id] = alert
    if len(alerts) == 1:
        return next(iter(alerts.values()))
    what = f"{len(alerts)} alerts begin" if alerts else "no alert begins"
    raise UsageError(
        f"With {begin!r} {what}; expected the id of one, as messages and `lakehouse alerts`"
        " have it.",
        next_step="`lakehouse alerts` lists them.",
    )


def close(settings: Settings, alert: Alert, *, by: str, why: str) -> Incident:
    """Close an incident until it fires anew; those who were notified of it are notified of that
    too, by the next round of monitoring.

    :raises UsageError: when it is not open now.
    """

    def closed(state: AlertState, incident: Incident) -> AlertState:
        now = datetime.now(UTC)
        resolved = Resolved(incident.firing.key, now, f"Closed by {by}: {why}", by_person=True)
        return record_resolved(state, resolved, now, silence_texts(settings))

    return _change(settings, alert, closed)


def acknowledge(settings: Settings, alert: Alert, *, by: str, why: str) -> Incident:
    """Acknowledge an incident: it is not repeated, and stays open until it is resolved.

    :raises UsageError: when it is not open now.
    """

    def acknowledged(state: AlertState, incident: Incident) -> AlertState:
        known = replace(incident, acknowledged=f"{by}: {why}")
        return replace(state, open={**state.open, alert.key: known})

    return _change(settings, alert, acknowledged)


def _change(
    settings: Settings, alert: Alert, change: Callable[[AlertState, Incident], AlertState]
) -> Incident:
    with state_lock(settings, _ROUND_SECONDS):
        state = read_state(settings)
        incident = state.open.get(alert.key)
        if incident is None:
            raise UsageError(
                f"{alert.title!r} is not open now; expected an open incident.",
                next_step="`lakehouse alerts --open` lists what is.",
            )
        state = change(state, incident)
        write_state(settings, state)
        # The record has it at once; the other sinks get it in the next round.
        record = {FILE: FileSink(settings.home / FILE_NAME, settings.title)}
        Dispatcher(state, lambda now: write_state(settings, now), _LOGGER).run(record)
        return incident
