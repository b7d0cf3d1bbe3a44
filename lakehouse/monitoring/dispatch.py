"""One round: what was observed is planned and put into the queues in one write, and then sent
to each sink by itself.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from threading import Lock

from lakehouse.errors import LakehouseError
from lakehouse.monitoring.alert_plan import SilenceOf, plan_alerts, plan_resolved
from lakehouse.monitoring.alert_settings import Routes, name_of
from lakehouse.monitoring.alert_state import AlertState
from lakehouse.monitoring.incidents import Observed, Resolved
from lakehouse.monitoring.outbox import (
    Queue,
    drop_delivered,
    enqueue,
    is_due,
    keep_known,
    next_parcel,
    postpone_refused,
)
from lakehouse.monitoring.sinks import FILE, LOG, Sink
from lakehouse.orchestration.alert import Alert

ROUND_SECONDS = 30.0
"""How long a round delivers at most; Dagster gives a sensor's tick a minute."""
_TRIED_IN_VAIN = 2
"""After so many messages that a sink refused in one round, it counts as down."""
_AT_THE_END = (FILE, LOG)
"""Sinks that receive the same message twice without harm, so that their queues are kept once a
round.
"""
_MANY = 1_000_000


def enqueue_alerts(
    state: AlertState, observed: Observed, now: datetime, routes: Routes, silence_of: SilenceOf
) -> AlertState:
    """Return the state after what was observed: pure, with each message in the queues of those
    it goes to.
    """
    planned = plan_alerts(state, observed, now, routes.repeat_after, silence_of)
    names = [LOG, *map(name_of, routes.urls)]
    queues = keep_known(state.queues, [FILE, *names])
    _record(queues, planned.alerts, now)
    waiting = (*state.unrouted, *planned.alerts)
    for name in names:
        alerts = [alert for alert in waiting if _goes_to(name, alert, routes)]
        queues[name] = enqueue(queues[name], alerts, now, routes.at_once)
    cursors = {**state.cursors, **observed.cursors}
    return AlertState(
        planned.open, queues, cursors | {"looked_at": now.isoformat()}, planned.closed
    )


def record_resolved(
    state: AlertState, resolved: Resolved, now: datetime, silence_of: SilenceOf
) -> AlertState:
    """Return the state after a person ended an incident: pure, with the message in the queue of
    the record alone. The next round of monitoring sends it to those that its settings name, which
    the person's need not.
    """
    planned = plan_resolved(state, resolved, now, silence_of)
    queues = dict(state.queues)
    _record(queues, planned.alerts, now)
    unrouted = (*state.unrouted, *planned.alerts)
    return AlertState(planned.open, queues, state.cursors, planned.closed, unrouted)


def _record(queues: dict[str, Queue], alerts: Sequence[Alert], now: datetime) -> None:
    """Add messages to the queue of the record, each by itself, and what was muted too."""
    queues[FILE] = enqueue(queues.get(FILE, Queue()), alerts, now, _MANY)


def _goes_to(name: str, alert: Alert, routes: Routes) -> bool:
    return not alert.muted and (name == LOG or name in map(name_of, routes.of(alert)))


@dataclass
class Dispatcher:
    """Sends what the queues hold, to all sinks at once; the state is kept after each
    message.
    """

    state: AlertState
    keep: Callable[[AlertState], None]
    logger: logging.Logger
    _lock: Lock = field(default_factory=Lock, init=False)

    def run(self, sinks: Mapping[str, Sink], seconds: float = ROUND_SECONDS) -> AlertState:
        """Send what is due, for so long at most; a later round sends the rest."""
        until = time.monotonic() + seconds
        due = [
            sink for name, sink in sinks.items() if is_due(self._queue(name), datetime.now(UTC))
        ]
        if due:
            with ThreadPoolExecutor(len(due), thread_name_prefix="alerts") as pool:
                list(pool.map(lambda sink: self._send_all(sink, until), due))
            self.keep(self.state)
        return self.state

    def _send_all(self, sink: Sink, until: float) -> None:
        refused: set[str] = set()
        while len(refused) < _TRIED_IN_VAIN and time.monotonic() < until:
            parcel = next_parcel(self._queue(sink.name), refused)
            if parcel is None:
                return
            alert = parcel.alert
            if self._send(sink, alert):
                self._move(sink.name, partial(drop_delivered, alert=alert))
            else:
                refused.add(alert.key)
                now = datetime.now(UTC)
                self._move(sink.name, partial(postpone_refused, alert=alert, now=now))

    def _send(self, sink: Sink, alert: Alert) -> bool:
        try:
            sink.send(alert)
        except Exception as error:
            # Whatever a service or the network raises: the message is kept, and tried again.
            self.logger.warning(
                "Alert %s was not delivered to %s: %s",
                alert.alert_id,
                sink.name,
                _describe(error),
            )
            return False
        return True

    def _queue(self, name: str) -> Queue:
        return self.state.queues.get(name, Queue())

    def _move(self, name: str, change: Callable[[Queue], Queue]) -> None:
        with self._lock:
            queues = {**self.state.queues, name: change(self._queue(name))}
            self.state = replace(self.state, queues=queues)
            if name not in _AT_THE_END:
                self.keep(self.state)


def _describe(error: Exception) -> str:
    # The text of a library may hold a URL, and that a secret.
    return str(error) if isinstance(error, LakehouseError) else type(error).__name__
