"""When processes of `lakehouse dev` are started again, and the messages about it."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import click

from lakehouse.orchestration.backoff import pause_seconds

_STEADY_SECONDS = 600
"""After this time, a failure is not one of the start, and the pauses begin again."""


@dataclass
class Restarts:
    """When a process is started again: after pauses that grow until it works for long."""

    answers_since: float | None = None
    """None while it is down or starts."""
    retry_at: float | None = None
    """None while it runs."""
    _failures: int = 0

    def plan_next(self) -> str:
        """Plan the next start after a failure, and return its time for messages."""
        since = self.answers_since
        if since is not None and time.monotonic() - since > _STEADY_SECONDS:
            self._failures = 0
        self._failures += 1
        seconds = pause_seconds(self._failures)
        self.answers_since, self.retry_at = None, time.monotonic() + seconds
        return f"{datetime.now(UTC) + timedelta(seconds=seconds):%H:%M:%S} UTC"

    @property
    def is_paused(self) -> bool:
        """Whether the next start must still wait."""
        return self.retry_at is not None and time.monotonic() < self.retry_at


def say(text: str) -> None:
    """Print a line with the time to standard error."""
    click.echo(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC  {text}", err=True)
