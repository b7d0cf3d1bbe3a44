"""What is open, what is on its way and up to where was monitored, in one file that is written
in one step.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from lakehouse.errors import LakehouseError
from lakehouse.monitoring.incidents import Incident
from lakehouse.monitoring.outbox import Queue
from lakehouse.orchestration.alert import Alert
from lakehouse.settings import Settings
from lakehouse.storage.file_lock import file_lock
from lakehouse.storage.json_files import read_json, write_json


@dataclass(frozen=True)
class AlertState:
    """All that is known from one round to the next. Moving on and what is to be sent of it are
    one write.
    """

    open: Mapping[str, Incident] = field(default_factory=dict)
    queues: Mapping[str, Queue] = field(default_factory=dict)
    cursors: Mapping[str, Any] = field(default_factory=dict)
    closed: Mapping[str, datetime] = field(default_factory=dict)
    """What a person closed, by key, and when it was last seen firing before that."""
    unrouted: Sequence[Alert] = ()
    """Messages of what people did, until a round of monitoring decides where they go: the command
    may know other places than that.
    """

    @property
    def is_first(self) -> bool:
        """Whether nothing was monitored before."""
        return not self.cursors

    @property
    def undelivered(self) -> int:
        """How many messages wait for a sink."""
        return len(self.unrouted) + sum(queue.waiting for queue in self.queues.values())


class StateBusy(LakehouseError):
    """Another process monitors and dispatches, or changes what is open."""


def state_lock(settings: Settings, wait_seconds: float) -> AbstractContextManager[None]:
    """Hold the lock of who monitors and dispatches, and of who changes what is open.

    :raises StateBusy: when another process holds it for longer than `wait_seconds`.
    """
    file = state_file(settings)
    busy = StateBusy(
        f"A round of monitoring has gone on for more than {wait_seconds:.0f} seconds.",
        next_step="Try it again.",
    )
    return file_lock(file.with_name(f"{file.name}.lock"), wait_seconds, busy)


def state_file(settings: Settings) -> Path:
    """Return where the state is kept."""
    return settings.home / "alerts" / "state.json"


def read_state(settings: Settings) -> AlertState:
    """Read the state; an empty one where nothing was monitored yet."""
    file = state_file(settings)
    if not file.is_file():
        return AlertState()
    state: AlertState = read_json(file, AlertState)
    return state


def write_state(settings: Settings, state: AlertState) -> None:
    """Write the state as a whole, or not at all."""
    write_json(state_file(settings), state, AlertState)
