"""Messages on their way to the sinks: one after the other, not too many at once, each until it
was taken.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lakehouse.monitoring.alert_summary import summary
from lakehouse.orchestration.alert_message import Alert
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
    """What waits for one sink: what is to be sent now, what waits for the next summary, and how
    it went so far.
    """

    parcels: tuple[Parcel, ...] = ()
    held: tuple[Alert, ...] = ()
    posted_at: tuple[datetime, ...] = ()
    summary_at: datetime | None = None
    failures: int = 0
    retry_at: datetime | None = None

    @property
    def waiting(self) -> int:
        """How many messages wait."""
        return len(self.parcels) + len(self.held)


def post(queue: Queue, alerts: Sequence[Alert], now: datetime, at_once: int) -> Queue:
    """Put messages into a queue: each by itself as long as there are few, else one summary of
    all in each window.
    """
    recent = tuple(at for at in queue.posted_at if now - at < WINDOW)
    queue = replace(queue, posted_at=recent)
    news = (*queue.held, *alerts)
    if not news:
        return queue
    may_sum_up = queue.summary_at is None or now - queue.summary_at >= WINDOW
    fits = len(recent) + len(news) <= at_once
    if fits and (may_sum_up or not queue.held):
        return _put(replace(queue, held=()), news, now)
    if not may_sum_up:
        return replace(queue, held=news)
    return _put(replace(queue, held=(), summary_at=now), [summary(news, now)], now)


def is_due(queue: Queue, now: datetime) -> bool:
    """Whether something may be sent now; a sink that was down is left in peace for a while."""
    return bool(queue.parcels) and (queue.retry_at is None or now >= queue.retry_at)


def next_parcel(
    queue: Queue, refused: Iterable[str], passed_over: Iterable[str]
) -> Parcel | None:
    """Return what is to be sent next: the oldest that was not tried in this round.

    What is said of one thing stays in order: nothing of a thing is sent while an older message
    of it was refused.

    :param refused: ids of the messages that were tried in vain in this round.
    :param passed_over: keys of the things that those speak of.
    """
    tried, keys = set(refused), set(passed_over)
    free = (
        one
        for one in queue.parcels
        if one.alert.alert_id not in tried and one.alert.key not in keys
    )
    return next(free, None)


def delivered(queue: Queue, alert: Alert) -> Queue:
    """Return the queue after a sink took a message."""
    left = tuple(parcel for parcel in queue.parcels if parcel.alert.alert_id != alert.alert_id)
    return replace(queue, parcels=left, failures=0, retry_at=None)


def refused(queue: Queue, alert: Alert, now: datetime) -> Queue:
    """Return the queue after a sink did not take a message: the next try is after a pause,
    longer each time.
    """
    failures = queue.failures + 1
    parcels = tuple(
        (
            replace(parcel, tries=parcel.tries + 1)
            if parcel.alert.alert_id == alert.alert_id
            else parcel
        )
        for parcel in queue.parcels
    )
    pause = timedelta(seconds=min(_LONGEST_PAUSE_SECONDS, pause_seconds(failures)))
    return replace(queue, parcels=parcels, failures=failures, retry_at=now + pause)


def _put(queue: Queue, alerts: Sequence[Alert], now: datetime) -> Queue:
    known = {parcel.alert.alert_id for parcel in queue.parcels}
    parcels = tuple(Parcel(alert) for alert in alerts if alert.alert_id not in known)
    return replace(
        queue,
        parcels=(*queue.parcels, *parcels),
        posted_at=(*queue.posted_at, *([now] * len(parcels))),
    )


def kept(queues: Mapping[str, Queue], names: Iterable[str]) -> dict[str, Queue]:
    """Return the queues of the sinks that there are; what waits for one that was taken away is
    dropped.
    """
    return {name: queues.get(name, Queue()) for name in names}
