"""What fires and what is resolved, and the incidents that are open of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from lakehouse.orchestration.alert import Severity
from lakehouse.tables.escaping import visible

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


def moment_text(at: datetime) -> str:
    """Say a moment of UTC as messages do."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True)
class Firing:
    """Something was seen failing at a moment; `key` names it, so that it is one incident also
    where it is tried again.
    """

    key: str
    kind: Kind
    at: datetime
    severity: Severity
    title: str
    lines: tuple[str, ...] = ()
    """What is wrong, by how much, since when, and what such a row looks like."""
    links: tuple[str, ...] = ()
    """Where it can be seen."""
    commands: tuple[str, ...] = ()
    """What a person may do next."""
    table: str = ""
    owner: str = ""
    run_id: str = ""
    affected_partitions: frozenset[str] = frozenset()
    """The partitions in which it fails; empty where it is the whole."""
    size: int = 0
    """How much of it came so far, where it may grow: it never becomes less while the incident
    is open.
    """
    causes: tuple[str, ...] = ()
    """What it is of, where that may become more, such as the rules that rows break."""
    brief: str = ""
    """How bad it is or of what it came, in a few words: what stands beside its like in a
    summary.
    """
    heals: bool = False
    """Whether it is tried again by itself: people are notified of the second failure, or
    that it lasts.
    """
    state: str = ""
    """What was monitored, such as a snapshot: failing in the same state, it did not fail once
    more.
    """

    def __post_init__(self) -> None:
        # A file's name may stand in it, and would steer the terminal that lists it.
        object.__setattr__(self, "title", visible(self.title))


@dataclass(frozen=True)
class Resolved:
    """Something was seen to work at a moment, or some partitions of it; empty for the whole."""

    key: str
    at: datetime
    how: str
    affected_partitions: frozenset[str] = frozenset()
    links: tuple[str, ...] = ()
    """Where it can be seen what resolved it; those of the firing, where it has none."""
    by_person: bool = False
    """Whether somebody closed it: what is still to be seen of the same failure opens nothing
    then.
    """


@dataclass(frozen=True)
class Observed:
    """What the detectors observed in one round.

    `complete` are the kinds of which all that fires now is among the facts, so that what is
    not is resolved. `cursors` say up to where was monitored; they are kept with the
    incidents, in one write.
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
    """Something that fails: how it was last seen, since when, how often, and when people were
    last notified.
    """

    firing: Firing
    opened_at: datetime
    last_at: datetime
    times: int = 1
    affected_partitions: frozenset[str] = frozenset()
    notified_at: datetime | None = None
    """None as long as it is silenced."""
    alerts: int = 0
    """How many messages were made of it."""
    notified_size: int = 0
    """Its size when people were last notified."""
    notified_causes: tuple[str, ...] = ()
    acknowledged: str = ""
    """Who looks after it and why; it is not repeated then."""

    @classmethod
    def of(cls, firing: Firing) -> "Incident":
        """Begin one."""
        return cls(firing, firing.at, firing.at, affected_partitions=firing.affected_partitions)

    @property
    def url(self) -> str:
        """The web address that shows it; empty where it has none."""
        addresses = (link.partition(": ")[2] for link in self.firing.links)
        return next((one for one in addresses if one.startswith(("http://", "https://"))), "")

    def after_alert(self, now: datetime, *, is_muted: bool) -> "Incident":
        """Return it after a message of it was made; nobody is notified of one that is muted."""
        counted = replace(self, alerts=self.alerts + 1)
        if is_muted:
            return counted
        return replace(
            counted,
            notified_at=now,
            notified_size=self.firing.size,
            notified_causes=self.firing.causes,
        )

    def after_firing(self, firing: Firing) -> "Incident":
        """Return it after it was seen failing again; the same failure counts once."""
        if firing.at < self.last_at:
            return self
        if firing.at == self.last_at:
            # Such as how late it is now.
            return replace(self, firing=firing)
        # What fails as a whole stays so until the whole works.
        partitions: frozenset[str] = frozenset()
        if self.affected_partitions and firing.affected_partitions:
            partitions = self.affected_partitions | firing.affected_partitions
        is_same = bool(firing.state) and firing.state == self.firing.state
        times = self.times if is_same else self.times + 1
        return replace(
            self, firing=firing, last_at=firing.at, times=times, affected_partitions=partitions
        )

    def after_resolved(self, resolved: Resolved) -> "Incident | None":
        """Return what is still open of it; None where it is resolved."""
        if resolved.at <= self.last_at and not resolved.by_person:
            return self
        if not resolved.affected_partitions:
            return None
        # Of what fails as a whole, a partition alone resolves nothing.
        partitions = self.affected_partitions - resolved.affected_partitions
        if self.affected_partitions and not partitions:
            return None
        return replace(self, affected_partitions=partitions)
