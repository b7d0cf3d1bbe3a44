"""Messages on their way to the sinks: one after the other, not too many at once, each until it
was delivered.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lakehouse.monitoring.alert_summary import summarize
from lakehouse.orchestration.alert import Alert
from lakehouse.runtime.backoff import pause_seconds

WINDOW = timedelta(minutes=5)
"""The time in which a sink gets no more than so many messages, and no more than one summary."""
_LONGEST_PAUSE_SECONDS = 40
"""A sink that is back gets what waits within a minute."""


@dataclass(frozen=True)
class Parcel:
    """A message on its way, and how often it was tried."""

    alert: Alert
    tries: int = 0


@dataclass(frozen=True)
class Queue:
    """What waits for one sink: what is to be sent now or later, and how it went so far."""

    parcels: tuple[Parcel, ...] = ()
    deferred: tuple[Alert, ...] = ()
    """What waits for the next summary."""
    posted_at: tuple[datetime, ...] = ()
    summary_at: datetime | None = None
    failures: int = 0
    retry_at: datetime | None = None

    @property
    def waiting(self) -> int:
        """How many messages wait."""
        return len(self.parcels) + len(self.deferred)


def enqueue(queue: Queue, alerts: Sequence[Alert], now: datetime, at_once: int) -> Queue:
    """Put messages into a queue: each by itself as long as there are few, else one summary of
    all in each window.
    """
    recent = tuple(at for at in queue.posted_at if now - at < WINDOW)
    queue = replace(queue, posted_at=recent)
    news = (*queue.deferred, *alerts)
    if not news:
        return queue
    may_sum_up = queue.summary_at is None or now - queue.summary_at >= WINDOW
    fits = len(recent) + len(news) <= at_once
    if fits and (may_sum_up or not queue.deferred):
        return _append(replace(queue, deferred=()), news, now)
    if not may_sum_up:
        return replace(queue, deferred=news)
    return _append(replace(queue, deferred=(), summary_at=now), [summarize(news, now)], now)


def is_due(queue: Queue, now: datetime) -> bool:
    """Whether something may be sent now; a sink that was down is left in peace for a while."""
    return bool(queue.parcels) and (queue.retry_at is None or now >= queue.retry_at)


def next_parcel(queue: Queue, refused: Collection[str]) -> Parcel | None:
    """Return what is to be sent next: the oldest that was not tried in this round.

    The messages of an incident stay in order: none of them is sent while an older message
    of it was refused.

    :param refused: keys of the incidents of which a message was tried in vain in this round.
    """
    for parcel in queue.parcels:
        if parcel.alert.key not in refused:
            return parcel
    return None


def drop_delivered(queue: Queue, alert: Alert) -> Queue:
    """Return the queue after a sink received a message."""
    waiting = tuple(
        parcel for parcel in queue.parcels if parcel.alert.alert_id != alert.alert_id
    )
    return replace(queue, parcels=waiting, failures=0, retry_at=None)


def postpone_refused(queue: Queue, alert: Alert, now: datetime) -> Queue:
    """Return the queue after a sink refused a message: the next try is after a pause,
    longer each time.
    """
    failures = queue.failures + 1
    parcels = []
    for parcel in queue.parcels:
        is_refused = parcel.alert.alert_id == alert.alert_id
        parcels.append(replace(parcel, tries=parcel.tries + is_refused))
    pause = timedelta(seconds=min(_LONGEST_PAUSE_SECONDS, pause_seconds(failures)))
    return replace(queue, parcels=tuple(parcels), failures=failures, retry_at=now + pause)


def _append(queue: Queue, alerts: Sequence[Alert], now: datetime) -> Queue:
    known = {parcel.alert.alert_id for parcel in queue.parcels}
    parcels = tuple(Parcel(alert) for alert in alerts if alert.alert_id not in known)
    return replace(
        queue,
        parcels=(*queue.parcels, *parcels),
        posted_at=(*queue.posted_at, *([now] * len(parcels))),
    )


def keep_known(queues: Mapping[str, Queue], names: Iterable[str]) -> dict[str, Queue]:
    """Return the queues of the sinks that there are; what waits for one that is gone is
    dropped.
    """
    return {name: queues.get(name, Queue()) for name in names}
