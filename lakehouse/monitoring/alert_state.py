"""What is open, what is on its way and up to where was looked, in one file that is written in one step."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from filelock import FileLock

from lakehouse.monitoring.incidents import Broke, Incident
from lakehouse.monitoring.outbox import Parcel, Queue
from lakehouse.orchestration.alert_message import Alert
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import replace_text


@dataclass(frozen=True)
class AlertState:
    """All that is known from one look to the next. Moving on and what is to be sent of it are one write."""

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
    return from_json(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else AlertState()


def write_state(settings: Settings, state: AlertState) -> None:
    """Write the state as a whole, or not at all."""
    replace_text(state_file(settings), json.dumps(to_json(state), ensure_ascii=False, sort_keys=True) + "\n")


def to_json(state: AlertState) -> dict[str, Any]:
    """Return the state as a piece of JSON."""
    return {
        "open": {key: _incident_json(incident) for key, incident in state.open.items()},
        "queues": {name: _queue_json(queue) for name, queue in state.queues.items()},
        "cursors": dict(state.cursors),
        "closed": {key: at.isoformat() for key, at in state.closed.items()},
    }


def from_json(found: Mapping[str, Any]) -> AlertState:
    """Read what `to_json` wrote."""
    return AlertState(
        {key: _incident(one) for key, one in found["open"].items()},
        {name: _queue(one) for name, one in found["queues"].items()},
        found["cursors"],
        {key: datetime.fromisoformat(at) for key, at in found.get("closed", {}).items()},
    )


def _incident_json(incident: Incident) -> dict[str, Any]:
    broke = incident.broke
    return {
        **incident.__dict__,
        "broke": {
            **broke.__dict__,
            "at": broke.at.isoformat(),
            "extent": sorted(broke.extent),
        },
        "opened_at": incident.opened_at.isoformat(),
        "last_at": incident.last_at.isoformat(),
        "extent": sorted(incident.extent),
        "told_at": _text(incident.told_at),
    }


def _incident(found: Mapping[str, Any]) -> Incident:
    broke = found["broke"]
    return Incident(
        **{
            **found,
            "broke": Broke(
                **{
                    **broke,
                    "at": datetime.fromisoformat(broke["at"]),
                    **{name: tuple(broke.get(name, ())) for name in ("lines", "links", "commands", "causes")},
                    "extent": frozenset(broke["extent"]),
                }
            ),
            "opened_at": datetime.fromisoformat(found["opened_at"]),
            "last_at": datetime.fromisoformat(found["last_at"]),
            "extent": frozenset(found["extent"]),
            "told_at": _moment(found["told_at"]),
            "told_causes": tuple(found.get("told_causes", ())),
        }
    )


def _queue_json(queue: Queue) -> dict[str, Any]:
    return {
        "parcels": [{"alert": parcel.alert.to_json(), "tries": parcel.tries} for parcel in queue.parcels],
        "held": [alert.to_json() for alert in queue.held],
        "posted_at": [at.isoformat() for at in queue.posted_at],
        "summary_at": _text(queue.summary_at),
        "failures": queue.failures,
        "retry_at": _text(queue.retry_at),
    }


def _queue(found: Mapping[str, Any]) -> Queue:
    return Queue(
        tuple(Parcel(Alert.from_json(one["alert"]), one["tries"]) for one in found["parcels"]),
        tuple(Alert.from_json(one) for one in found["held"]),
        tuple(datetime.fromisoformat(at) for at in found["posted_at"]),
        _moment(found["summary_at"]),
        found["failures"],
        _moment(found["retry_at"]),
    )


def _text(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
