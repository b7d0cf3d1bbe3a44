"""Delivers messages: one queue per recipient, a summary of many, and retries."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from threading import Lock

from lakehouse.alerts.alert_routes import Routes, name_of
from lakehouse.alerts.alert_state import AlertState, Queue
from lakehouse.alerts.incidents import Alert, Saying, alert_id
from lakehouse.alerts.sinks import Sink, describe_failure
from lakehouse.orchestration.backoff import pause_seconds

_ROUND_SECONDS = 30.0
"""Dagster stops a sensor tick after a minute."""
_MAX_FAILED_MESSAGES = 2
"""After this many failed messages, a round stops delivering to a recipient."""
_LONGEST_PAUSE_SECONDS = 40
_SHOWN = 20
"""Titles in a summary."""
_EVENTS: Mapping[Saying, str] = {
    "opened": "firing",
    "grew": "grew",
    "repeated": "still firing",
    "recovered": "resolved",
}


def route_alerts(state: AlertState, alerts: Sequence[Alert], routes: Routes) -> AlertState:
    """Return the state with messages in the queues of their recipients.

    The queues of removed recipients are deleted.
    """
    messages = [alert for alert in (*state.unrouted, *alerts) if not alert.muted]
    queues = {}
    for name in map(name_of, routes.urls):
        queue = state.queues.get(name, Queue())
        routed = [alert for alert in messages if name in map(name_of, routes.of(alert))]
        queues[name] = replace(queue, pending=(*queue.pending, *routed))
    return replace(state, queues=queues, unrouted=())


def summarize(alerts: Sequence[Alert], now: datetime) -> Alert:
    """Return one message for many: their titles, errors first."""
    ordered = sorted(alerts, key=lambda alert: (alert.saying == "recovered", alert.severity))
    errors = sum(alert.severity == "error" and alert.saying != "recovered" for alert in alerts)
    counts = Counter(alert.saying for alert in alerts)
    events = [f"{counts[event]} {word}" for event, word in _EVENTS.items() if counts[event]]
    more = len(alerts) - _SHOWN
    return Alert(
        alert_id("summary", *sorted(alert.alert_id for alert in alerts)),
        "summary",
        "recovered" if counts["recovered"] == len(alerts) else "summary",
        "error" if errors else "warn",
        now,
        f"{len(alerts)} alerts at once: {', '.join(events)}",
        (
            f"Errors: {errors}",
            *(f"- {alert.title}" for alert in ordered[:_SHOWN]),
            *([f"- and {more:,} more"] if more > 0 else []),
            "Next: lakehouse alerts --open",
        ),
    )


@dataclass
class Dispatcher:
    """Delivers the queued messages to all recipients in parallel.

    More than `at_once` that wait for a recipient are sent as one summary. The state is saved
    after each delivery, so that a killed process repeats at most one.
    """

    state: AlertState
    save: Callable[[AlertState], None]
    logger: logging.Logger
    at_once: int
    _lock: Lock = field(default_factory=Lock, init=False)

    def run(self, sinks: Mapping[str, Sink]) -> AlertState:
        """Deliver for half a minute at most; a later round continues."""
        until, now = time.monotonic() + _ROUND_SECONDS, datetime.now(UTC)
        due = []
        for name, queue in self.state.queues.items():
            if queue.pending and (queue.retry_at is None or now >= queue.retry_at):
                due.append(sinks[name])
        if due:
            with ThreadPoolExecutor(len(due), thread_name_prefix="alerts") as pool:
                list(pool.map(lambda sink: self._deliver(sink, until), due))
        return self.state

    def _deliver(self, sink: Sink, until: float) -> None:
        """Deliver the messages of a recipient; those of an incident stay in order."""
        failed: set[str] = set()
        queue = self.state.queues[sink.name]
        is_summary = len(queue.pending) > self.at_once
        messages = (
            (summarize(queue.pending, datetime.now(UTC)),) if is_summary else queue.pending
        )
        for alert in messages:
            if len(failed) == _MAX_FAILED_MESSAGES or time.monotonic() >= until:
                return
            if alert.key in failed:
                continue
            try:
                sink.send(alert)
            except Exception as error:
                # Any error of a service or of the network: the message is retried.
                failed.add(alert.key)
                reason = describe_failure(error)
                self.logger.warning(f"{sink.name} rejected {alert.alert_id}: {reason}")
                queue = after_failure(queue, alert)
            else:
                queue = Queue() if is_summary else after_delivery(queue, alert)
            self._save(sink.name, queue)

    def _save(self, name: str, queue: Queue) -> None:
        with self._lock:
            self.state = replace(self.state, queues={**self.state.queues, name: queue})
            self.save(self.state)


def after_delivery(queue: Queue, alert: Alert) -> Queue:
    """Return the queue after a message was delivered."""
    return Queue(tuple(one for one in queue.pending if one.alert_id != alert.alert_id))


def after_failure(queue: Queue, alert: Alert) -> Queue:
    """Return the queue after a failure: the next attempt is after a longer pause.

    The messages of the incident move to the end, so that they do not block other incidents.
    """
    same = tuple(one for one in queue.pending if one.key == alert.key)
    remaining = tuple(one for one in queue.pending if one.key != alert.key)
    failures = queue.failures + 1
    seconds = min(_LONGEST_PAUSE_SECONDS, pause_seconds(failures))
    retry_at = datetime.now(UTC) + timedelta(seconds=seconds)
    return replace(queue, pending=remaining + same, failures=failures, retry_at=retry_at)
