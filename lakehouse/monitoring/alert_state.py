"""What is open, what is on its way and up to where was looked, in one file that is written in
one step.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from lakehouse.monitoring.incidents import Incident
from lakehouse.monitoring.outbox import Queue
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import replace_text

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_NEW_NAMES = {
    "broke": "firing",
    "told_at": "notified_at",
    "told_size": "notified_size",
    "told_causes": "notified_causes",
}
"""Names of an incident's fields in the files of version 0.1, which are read on."""


@dataclass(frozen=True)
class AlertState:
    """All that is known from one look to the next. Moving on and what is to be sent of it are
    one write.
    """

    open: Mapping[str, Incident] = field(default_factory=dict)
    queues: Mapping[str, Queue] = field(default_factory=dict)
    cursors: Mapping[str, Any] = field(default_factory=dict)
    closed: Mapping[str, datetime] = field(default_factory=dict)
    """What a person said is over, by key, and when it was last seen broken before that."""

    @property
    def is_first(self) -> bool:
        """Whether nobody looked before."""
        return not self.cursors

    @property
    def undelivered(self) -> int:
        """How many messages wait for a sink."""
        return sum(queue.waiting for queue in self.queues.values())


def state_lock(settings: Settings, seconds: float) -> FileLock:
    """Return the lock of who looks and tells, and of who changes what is open.

    :param seconds: how long it is waited for.
    """
    file = state_file(settings)
    file.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(f"{file}.lock", timeout=seconds)


def state_file(settings: Settings) -> Path:
    """Return where the state is kept."""
    return settings.home / "alerts" / "state.json"


def read_state(settings: Settings) -> AlertState:
    """Read the state; an empty one where nobody looked yet."""
    file = state_file(settings)
    return (
        from_json(json.loads(file.read_text(encoding="utf-8")))
        if file.is_file()
        else AlertState()
    )


def write_state(settings: Settings, state: AlertState) -> None:
    """Write the state as a whole, or not at all."""
    text = json.dumps(to_json(state), ensure_ascii=False, sort_keys=True)
    replace_text(state_file(settings), f"{text}\n")


def to_json(state: AlertState) -> dict[str, Any]:
    """Return the state as a piece of JSON."""
    made: dict[str, Any] = _state_type().dump_python(state, mode="json")
    return made


def from_json(found: Mapping[str, Any]) -> AlertState:
    """Read what `to_json` wrote, of this version or of one before."""
    incidents = {key: _with_new_names(incident) for key, incident in found["open"].items()}
    return _state_type().validate_python({**found, "open": incidents})


def _with_new_names(incident: Mapping[str, Any]) -> dict[str, Any]:
    return {_NEW_NAMES.get(name, name): value for name, value in incident.items()}


@cache
def _state_type() -> "TypeAdapter[AlertState]":
    from pydantic import TypeAdapter

    return TypeAdapter(AlertState)
