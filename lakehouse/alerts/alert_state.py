"""The state of alerts in one file: open incidents, mutes, cursors and undelivered messages.

Homes of earlier versions have other files, which are not read: their state starts empty.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from lakehouse.alerts.incidents import Alert, Incident
from lakehouse.alerts.mutes import Mute
from lakehouse.errors import LakehouseError
from lakehouse.settings import Settings
from lakehouse.storage.file_lock import file_lock
from lakehouse.storage.json_files import read_json, write_json

_CHANGE_SECONDS = 60
"""A round delivers for half a minute at most."""


@dataclass(frozen=True)
class Queue:
    """Messages that wait for one recipient, and its failed deliveries."""

    pending: tuple[Alert, ...] = ()
    failures: int = 0
    """Refused deliveries since the last successful one."""
    retry_at: datetime | None = None


@dataclass(frozen=True)
class AlertState:
    """All state from one round to the next, written at once."""

    open: Mapping[str, Incident] = field(default_factory=dict)
    queues: Mapping[str, Queue] = field(default_factory=dict)
    cursors: Mapping[str, Any] = field(default_factory=dict)
    closed: Mapping[str, datetime] = field(default_factory=dict)
    """The last failure of incidents whose failure can remain: operators closed them, or a
    rejected file was delivered again.
    """
    unrouted: tuple[Alert, ...] = ()
    """Messages of commands, which the next round routes with its own settings."""
    mutes: Mapping[str, Mute] = field(default_factory=dict)
    """By table or pattern."""

    @property
    def is_first(self) -> bool:
        """Whether there was no round yet."""
        return not self.cursors

    @property
    def undelivered(self) -> int:
        """The number of messages that wait for a recipient."""
        return len(self.unrouted) + sum(len(queue.pending) for queue in self.queues.values())

    def current_mutes(self, now: datetime) -> list[Mute]:
        """Return the mutes that have not expired."""
        return [mute for mute in self.mutes.values() if now < mute.until]

    def mute_of(self, table: str, now: datetime) -> str:
        """Return who muted a table and why, or an empty string."""
        mutes = (mute for mute in self.current_mutes(now) if mute.covers(table))
        return str(next(mutes, ""))


class StateBusy(LakehouseError):
    """Another process runs a round or changes the state."""


def state_lock(settings: Settings, wait_seconds: float) -> AbstractContextManager[None]:
    """Lock the state and the record of alerts.

    :raises StateBusy: if another process holds the lock for longer than `wait_seconds`.
    """
    file = state_file(settings)
    busy = StateBusy(
        f"The state of alerts was locked for more than {wait_seconds:.0f} seconds.",
        next_step="Try it again.",
    )
    return file_lock(file.with_name(f"{file.name}.lock"), wait_seconds, busy)


def state_file(settings: Settings) -> Path:
    """Return the path of the state."""
    return settings.home / "alerts" / "incidents.json"


def read_state(settings: Settings) -> AlertState:
    """Read the state; empty before the first round."""
    file = state_file(settings)
    if not file.is_file():
        return AlertState()
    state: AlertState = read_json(file, AlertState)
    return state


def write_state(settings: Settings, state: AlertState) -> None:
    """Replace the state atomically."""
    write_json(state_file(settings), state, AlertState)


@contextmanager
def changing_state(settings: Settings) -> Iterator[AlertState]:
    """Read the state under the lock; the caller writes the changed state in the block."""
    settings.make_home()
    with state_lock(settings, _CHANGE_SECONDS):
        yield read_state(settings)
