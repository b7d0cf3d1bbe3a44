"""What a person says of a thing that is broken: that somebody looks after it, or that it is
over.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from filelock import Timeout

from lakehouse.errors import TableBusy, UsageError
from lakehouse.monitoring.alert_log import read_alerts
from lakehouse.monitoring.alert_state import AlertState, read_state, state_lock, write_state
from lakehouse.monitoring.dispatch import Delivery, take_in
from lakehouse.monitoring.incidents import Incident, Observed, Resolved
from lakehouse.monitoring.routes import read_routes
from lakehouse.monitoring.silences import silence_texts
from lakehouse.monitoring.sinks import FILE, FILE_NAME, FileSink
from lakehouse.orchestration.alert_message import Alert
from lakehouse.settings import Settings

_LOGGER = logging.getLogger("lakehouse.alerts")
# A look delivers for half a minute at most.
_LOOK_SECONDS = 60


def alert_of(settings: Settings, begin: str) -> Alert:
    """Return the message of an id, or of how its id begins.

    :raises UsageError: when there is none, or more than one.
    """
    found = {
        one.alert_id: one
        for one in read_alerts(settings)
        if one.alert_id.startswith(begin.lower())
    }
    if len(found) == 1:
        return next(iter(found.values()))
    what = f"{len(found)} alerts begin" if found else "no alert begins"
    raise UsageError(
        f"With {begin!r} {what}; expected the id of one, as messages and `lakehouse alerts`"
        " have it.",
        next_step="`lakehouse alerts` lists them.",
    )


def close(settings: Settings, alert: Alert, *, by: str, why: str) -> Incident:
    """Say that a thing is over, until it breaks anew; those who were told that it broke are
    told that too.

    :raises UsageError: when it is not broken now.
    """

    def closed(state: AlertState, incident: Incident) -> AlertState:
        now = datetime.now(UTC)
        over = Resolved(incident.firing.key, now, f"Closed by {by}: {why}", by_person=True)
        return take_in(
            state, Observed((over,)), now, read_routes(settings), silence_texts(settings)
        )

    return _change(settings, alert, closed)


def acknowledge(settings: Settings, alert: Alert, *, by: str, why: str) -> Incident:
    """Say that somebody looks after a thing: it is not repeated, and stays open until it is
    over.

    :raises UsageError: when it is not broken now.
    """

    def acknowledged(state: AlertState, incident: Incident) -> AlertState:
        known = replace(incident, acknowledged=f"{by}: {why}")
        return replace(state, open={**state.open, alert.key: known})

    return _change(settings, alert, acknowledged)


def _change(
    settings: Settings, alert: Alert, change: Callable[[AlertState, Incident], AlertState]
) -> Incident:
    try:
        with state_lock(settings, _LOOK_SECONDS):
            state = read_state(settings)
            incident = state.open.get(alert.key)
            if incident is None:
                raise UsageError(
                    f"{alert.title!r} is not broken now, so that there is nothing to say"
                    " of it.",
                    next_step="`lakehouse alerts --open` lists what is.",
                )
            state = change(state, incident)
            write_state(settings, state)
            # The record has it at once; the others are told by the next look.
            record = {FILE: FileSink(settings.home / FILE_NAME, settings.title)}
            Delivery(state, lambda now: write_state(settings, now), _LOGGER).run(record)
            return incident
    except Timeout:
        raise TableBusy(
            f"What is broken is being looked at for more than {_LOOK_SECONDS} seconds.",
            next_step="Try it again.",
        ) from None
