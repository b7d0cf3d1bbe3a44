"""What is seen to break and to mend, and what is open of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from lakehouse.orchestration.alert_message import Severity
from lakehouse.tables.escaping import visible

Kind = Literal[
    "check",
    "quarantined",
    "held",
    "failed",
    "late",
    "rejected",
    "automation",
    "looking",
    "reported",
]


def moment_text(at: datetime) -> str:
    """Say a moment of UTC as messages do."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True)
class Firing:
    """Something was seen broken at a moment; `key` names the thing, so that it is one also
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
    extent: frozenset[str] = frozenset()
    """The partitions in which it is broken; empty where it is the whole."""
    size: int = 0
    """How much of it came so far, where it may grow: it never becomes less while the thing is
    broken.
    """
    causes: tuple[str, ...] = ()
    """What it is of, where that may become more, such as the rules that rows break."""
    brief: str = ""
    """How bad it is or of what it came, in a few words: what stands beside its like in a
    summary.
    """
    heals: bool = False
    """Whether it is tried again by itself: then the second failure is told, or that it
    lasts.
    """
    state: str = ""
    """What was looked at, such as a snapshot: broken in the same state, it did not break once
    more.
    """

    def __post_init__(self) -> None:
        # A file's name may stand in it, and would steer the terminal that lists it.
        object.__setattr__(self, "title", visible(self.title))


@dataclass(frozen=True)
class Resolved:
    """Something was seen whole at a moment, or some partitions of it; empty for the whole."""

    key: str
    at: datetime
    said: str
    extent: frozenset[str] = frozenset()
    links: tuple[str, ...] = ()
    """Where it can be seen what mended it; those of the break, where it has none."""
    by_person: bool = False
    """Whether somebody said so: what is still to be seen of the same break opens nothing
    then.
    """


@dataclass(frozen=True)
class Observed:
    """What one look at the lakehouse found.

    `complete` are the kinds of which all that is broken now is among the facts, so that what is
    not is over. `cursors` say up to where was looked; they are kept with the incidents, in one
    write.
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
    """A thing that is broken: how it was last seen, since when, how often, and when somebody
    was last told.
    """

    firing: Firing
    opened_at: datetime
    last_at: datetime
    times: int = 1
    extent: frozenset[str] = frozenset()
    notified_at: datetime | None = None
    """None as long as it is muted."""
    alerts: int = 0
    """How many messages were made of it."""
    notified_size: int = 0
    """Its size when somebody was last told."""
    notified_causes: tuple[str, ...] = ()
    acknowledged: str = ""
    """Who looks after it and why; it is not repeated then."""

    @classmethod
    def of(cls, firing: Firing) -> "Incident":
        """Begin one."""
        return cls(firing, firing.at, firing.at, extent=firing.extent)

    def told(self, now: datetime, *, is_muted: bool) -> "Incident":
        """Return it after a message of it was made; one that is muted tells nobody."""
        made = replace(self, alerts=self.alerts + 1)
        if is_muted:
            return made
        return replace(
            made,
            notified_at=now,
            notified_size=self.firing.size,
            notified_causes=self.firing.causes,
        )

    def again(self, firing: Firing) -> "Incident":
        """Return it after the thing was seen broken again; a look at the same break counts as
        none.
        """
        if firing.at < self.last_at:
            return self
        if firing.at == self.last_at:
            # Such as how late it is now.
            return replace(self, firing=firing)
        # What is broken as a whole stays so until the whole is mended.
        extent = self.extent | firing.extent if self.extent and firing.extent else frozenset()
        is_same = bool(firing.state) and firing.state == self.firing.state
        times = self.times if is_same else self.times + 1
        return replace(self, firing=firing, last_at=firing.at, times=times, extent=extent)

    def without(self, resolved: Resolved) -> "Incident | None":
        """Return what is left of it; None where it is over."""
        if resolved.at <= self.last_at and not resolved.by_person:
            return self
        if not resolved.extent:
            return None
        # Of what was broken as a whole, a partition alone mends nothing.
        left = self.extent - resolved.extent
        return replace(self, extent=left) if left or not self.extent else None
