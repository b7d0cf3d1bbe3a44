"""What operators do about alerts: find, acknowledge and close an incident, and mute tables."""

from dataclasses import replace
from datetime import UTC, datetime

from lakehouse.alerts.alert_plan import plan_closing
from lakehouse.alerts.alert_state import AlertState, changing_state, write_state
from lakehouse.alerts.incidents import Alert, Incident, Resolved
from lakehouse.alerts.mutes import Mute
from lakehouse.alerts.sinks import read_alerts, record_of
from lakehouse.errors import UsageError
from lakehouse.settings import Settings


def find_alert(settings: Settings, prefix: str) -> Alert:
    """Return the message whose id starts with a prefix.

    :raises UsageError: if there is none, or more than one.
    """
    alerts = {alert.alert_id: alert for alert in read_alerts(settings)}
    matches = [id_ for id_ in alerts if id_.startswith(prefix.lower())]
    if len(matches) == 1:
        return alerts[matches[0]]
    raise UsageError(
        f"{len(matches)} alerts have an id that begins with {prefix!r}; expected one.",
        next_step="`lakehouse alerts` lists the ids.",
    )


def acknowledge(settings: Settings, alert: Alert, *, by: str, why: str) -> Incident:
    """Acknowledge an open incident: it is not repeated, and remains open until resolved.

    :raises UsageError: if it is not open.
    """
    with changing_state(settings) as state:
        incident = _open_incident(state, alert)
        known = replace(incident, acknowledged=f"{by}: {why}")
        write_state(settings, replace(state, open={**state.open, alert.key: known}))
        return incident


def close(settings: Settings, alert: Alert, *, by: str, why: str) -> Incident:
    """Close an open incident until it fires again.

    The record gets the message at once; the next round sends it to the recipients of its own
    settings, since those of the command can differ.

    :raises UsageError: if it is not open.
    """
    with changing_state(settings) as state:
        incident, now = _open_incident(state, alert), datetime.now(UTC)
        resolved = Resolved(alert.key, now, f"Closed by {by}: {why}", by_person=True)
        plan = plan_closing(state, resolved, now)
        for message in plan.alerts:
            record_of(settings).send(message)
        unrouted = (*state.unrouted, *plan.alerts)
        write_state(
            settings, replace(state, open=plan.open, closed=plan.closed, unrouted=unrouted)
        )
        return incident


def set_mute(settings: Settings, mute: Mute) -> AlertState:
    """Mute a table or pattern, or end its mute with a past `until`; return the new state."""
    with changing_state(settings) as state:
        mutes = (*state.current_mutes(mute.at), mute)
        muted = replace(state, mutes={mute.table: mute for mute in mutes})
        write_state(settings, muted)
        return muted


def _open_incident(state: AlertState, alert: Alert) -> Incident:
    incident = state.open.get(alert.key)
    if incident is None:
        raise UsageError(
            f"{alert.title!r} is not open now; expected an open incident.",
            next_step="`lakehouse alerts --open` lists them.",
        )
    return incident
