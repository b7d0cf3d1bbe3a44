"""Ticks of sensors that look again and again beside `lakehouse dev`: what Dagster does before and
after each tick takes more of the processor than a look.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import BoundedSemaphore

import dagster as dg

from lakehouse.orchestration.event_log import keep_engines
from lakehouse.runtime.dev_address_file import running_dev
from lakehouse.settings import Settings

_SECONDS = 29.5
"""Less than a multiple of the five seconds between two rounds of Dagster's daemon, so that the
next tick begins at once; and less than the minute after which a tick has taken too long.
"""
_MOST_AT_ONCE = 4
"""Each occupies a thread of the code server, of which there are at least five, and one of the
eight by which the daemon evaluates sensors.
"""
_PAUSE_SECONDS = 0.5
_free = BoundedSemaphore(_MOST_AT_ONCE)


@dataclass(frozen=True)
class LongTick:
    """A tick that may go on until a moment of the monotonic clock; where it may not go on, that
    is over.
    """

    settings: Settings
    until: float

    @property
    def may_go_on(self) -> bool:
        """Whether it is a long one."""
        return bool(self.until)

    @property
    def seconds_left(self) -> float:
        """How long it may go on; 0 once `lakehouse dev` is asked to end, which waits for its
        ticks.
        """
        seconds = self.until - time.monotonic()
        return seconds if seconds > 0 and running_dev(self.settings) else 0.0

    @property
    def is_over(self) -> bool:
        """Whether it went on, and may no longer."""
        return self.may_go_on and not self.seconds_left

    def waits(self, seconds: float) -> bool:
        """Wait until the next look; whether there is one."""
        until = time.monotonic() + seconds
        while self.until > until and self.seconds_left:
            if time.monotonic() >= until:
                return True
            time.sleep(_PAUSE_SECONDS)
        return False


def _has_room(instance: dg.DagsterInstance) -> bool:
    """Whether other ticks have threads beside those that go on."""
    sensors = instance.get_sensor_settings() or {}
    threads = sensors.get("num_workers") or _MOST_AT_ONCE + 1
    return bool(sensors.get("use_threads")) and threads > _MOST_AT_ONCE


@contextmanager
def long_tick(context: dg.SensorEvaluationContext, settings: Settings) -> Iterator[LongTick]:
    """Begin a tick; it may go on where it is beside `lakehouse dev`, and not as many go on as may
    at once.

    The first tick of a sensor does not, nor does one that somebody tries in the UI: neither knows
    of a tick before it.
    """
    is_waited_for = context.last_tick_completion_time is None
    may_go_on = (
        not is_waited_for and _has_room(context.instance) and running_dev(settings) is not None
    )
    if not may_go_on or not _free.acquire(blocking=False):
        yield LongTick(settings, until=0.0)
        return
    keep_engines()
    try:
        yield LongTick(settings, time.monotonic() + _SECONDS)
    finally:
        _free.release()
