"""Alerts as values: facts that detectors report, open incidents, and messages about them."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from lakehouse.orchestration.incident_reports import Severity
from lakehouse.tables.quoting import visible

Kind = Literal[
    "check",
    "quarantined",
    "blocked",
    "failed",
    "overdue",
    "rejected",
    "automation",
    "upkeep",
    "erasure",
    "monitor",
    "reported",
]
Saying = Literal["opened", "grew", "repeated", "recovered", "summary", "test"]


def moment_text(at: datetime) -> str:
    """Format a UTC timestamp for messages."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True)
class Alert:
    """A message. `key` identifies the incident: equal for its opening and its resolution."""

    alert_id: str
    """Equal if the same message is delivered twice, so that recipients can deduplicate."""
    key: str
    saying: Saying
    severity: Severity
    at: datetime
    title: str
    lines: tuple[str, ...] = ()
    table: str = ""
    owner: str = ""
    run_id: str = ""
    muted: str = ""
    """Who muted the table and why. The message is recorded and not sent."""
    kind: str = ""
    lakehouse: str = ""
    """Only in the record; other recipients get it in the text."""

    def __post_init__(self) -> None:
        # File names and values must not control a terminal or add lines.
        for name in ("title", "muted"):
            object.__setattr__(self, name, visible(getattr(self, name)))
        object.__setattr__(self, "lines", tuple(map(visible, self.lines)))

    @property
    def text(self) -> str:
        """The body of the message."""
        return "\n".join([*self.lines, f"Alert {self.alert_id}"])

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of the record."""
        return {**self.__dict__, "at": self.at.isoformat(), "lines": list(self.lines)}


def alert_id(*parts: object) -> str:
    """Return the hash of a message's identity, 16 hex digits."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Firing:
    """A failure at a timestamp. Repeated failures with the same key are one incident."""

    key: str
    kind: Kind
    at: datetime
    severity: Severity
    title: str
    lines: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    table: str = ""
    owner: str = ""
    run_id: str = ""
    affected_partitions: frozenset[str] = frozenset()
    """Empty if the entire table is affected."""
    size: int = 0
    """A count; its growth since the last message, or since it was smaller, sends a message."""
    heals: bool = False
    """Whether it is retried automatically: the second failure, or a lasting one, is sent."""

    def __post_init__(self) -> None:
        # A title may contain a file name, which must not control a terminal.
        object.__setattr__(self, "title", visible(self.title))


@dataclass(frozen=True)
class Resolved:
    """An incident is resolved at a timestamp, entirely or for some partitions."""

    key: str
    at: datetime
    how: str
    affected_partitions: frozenset[str] = frozenset()
    by_person: bool = False
    """Whether an operator closed it: an older failure does not open it again."""


@dataclass(frozen=True)
class Observed:
    """The result of detectors. An open incident of a `complete` kind without a firing is
    resolved; the cursors are stored in the same write as the incidents.
    """

    facts: tuple[Firing | Resolved, ...] = ()
    complete: frozenset[Kind] = frozenset()
    cursors: Mapping[str, Any] = field(default_factory=dict)

    def __add__(self, other: "Observed") -> "Observed":
        return Observed(
            (*self.facts, *other.facts),
            self.complete | other.complete,
            {**self.cursors, **other.cursors},
        )


@dataclass(frozen=True)
class Incident:
    """An open incident: its last firing, its history, and its last message."""

    firing: Firing
    opened_at: datetime
    last_at: datetime
    times: int = 1
    affected_partitions: frozenset[str] = frozenset()
    notified_at: datetime | None = None
    """None as long as all of its messages were muted."""
    alerts: int = 0
    notified_size: int = 0
    acknowledged: str = ""
    """Who acknowledged it and why: it is not repeated."""

    @classmethod
    def of(cls, firing: Firing) -> "Incident":
        """Open an incident."""
        return cls(firing, firing.at, firing.at, affected_partitions=firing.affected_partitions)

    @property
    def url(self) -> str:
        """The first web address of its links, or an empty string."""
        addresses = (link.partition(": ")[2] for link in self.firing.links)
        return next((url for url in addresses if url.startswith(("http://", "https://"))), "")

    def after_alert(self, now: datetime, *, is_muted: bool) -> "Incident":
        """Return the incident after a message about it."""
        if is_muted:
            return replace(self, alerts=self.alerts + 1)
        size = self.firing.size
        return replace(self, alerts=self.alerts + 1, notified_at=now, notified_size=size)

    def after_firing(self, firing: Firing) -> "Incident":
        """Return the incident after another failure; the same failure counts once."""
        if firing.at < self.last_at:
            return self
        size = min(self.notified_size, firing.size)
        if firing.at == self.last_at:
            return replace(self, firing=firing, notified_size=size)
        partitions: frozenset[str] = frozenset()
        if self.affected_partitions and firing.affected_partitions:
            partitions = self.affected_partitions | firing.affected_partitions
        return replace(
            self,
            firing=firing,
            last_at=firing.at,
            times=self.times + 1,
            affected_partitions=partitions,
            notified_size=size,
        )

    def after_resolved(self, resolved: Resolved) -> "Incident | None":
        """Return the rest of the incident, or None if it is resolved.

        A partition does not resolve a failure of the entire table.
        """
        if resolved.at <= self.last_at and not resolved.by_person:
            return self
        if not resolved.affected_partitions:
            return None
        partitions = self.affected_partitions - resolved.affected_partitions
        if self.affected_partitions and not partitions:
            return None
        return replace(self, affected_partitions=partitions)
