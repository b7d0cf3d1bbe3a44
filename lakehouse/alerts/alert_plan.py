"""Decides which messages are sent, from open incidents and observed facts; a pure function."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lakehouse.alerts.alert_state import AlertState
from lakehouse.alerts.incidents import (
    Alert,
    Firing,
    Incident,
    Observed,
    Resolved,
    Saying,
    alert_id,
    moment_text,
)

_GROWTH = 0.01
"""Relative growth that sends another message."""
_GROWTH_PAUSE = timedelta(minutes=5)
_HEALS_WITHIN = timedelta(minutes=2)
_NOTIFIED_ONCE = ("rejected",)
"""A rejected file can remain forever."""
_CLOSABLE = ("quarantined", "rejected", "upkeep")
"""Kinds that can remain forever without harm: their messages show how to close them."""
_SHOWN_PARTITIONS = 5
_PREFIXES = {"recovered": "Resolved: ", "repeated": "Still firing: ", "grew": "More: "}


def plan_alerts(
    state: AlertState, observed: Observed, now: datetime, repeat_after: timedelta
) -> "AlertPlan":
    """Decide which messages are sent: when an incident opens, grows, lasts, and is resolved.

    Open errors are repeated after `repeat_after`; warnings only if they fire again. The first
    round sends nothing about incidents that are already resolved.
    """
    plan = AlertPlan(state, now, repeat_after, dict(state.open), dict(state.closed))
    for fact in sorted(observed.facts, key=lambda fact: (fact.at, isinstance(fact, Resolved))):
        if isinstance(fact, Firing):
            plan.fire(fact)
        else:
            plan.resolve(fact)
    plan.resolve_missing(observed)
    plan.remind()
    if state.is_first:
        plan.alerts = [alert for alert in plan.alerts if alert.key in plan.open]
    return plan


def plan_closing(state: AlertState, resolved: Resolved, now: datetime) -> "AlertPlan":
    """Decide which messages are sent about an incident that an operator closes."""
    plan = AlertPlan(state, now, timedelta.max, dict(state.open), dict(state.closed))
    plan.resolve(resolved)
    return plan


@dataclass
class AlertPlan:
    """The incidents after a round, and its messages in order."""

    state: AlertState
    now: datetime
    repeat_after: timedelta
    open: dict[str, Incident]
    closed: dict[str, datetime]
    alerts: list[Alert] = field(default_factory=list)

    def fire(self, fact: Firing) -> None:
        """Open an incident, or add a failure to it."""
        if fact.key in self.closed and fact.at <= self.closed[fact.key]:
            return
        self.closed.pop(fact.key, None)
        known = self.open.get(fact.key)
        self.open[fact.key] = known.after_firing(fact) if known else Incident.of(fact)
        if known is None and not self._can_heal(self.open[fact.key]):
            self._alert("opened", fact.key)

    def resolve(self, fact: Resolved) -> None:
        """Resolve an incident, or some of its partitions."""
        known = self.open.get(fact.key)
        if known is None:
            return
        remaining = known.after_resolved(fact)
        if remaining is not None:
            self.open[fact.key] = remaining
            return
        self._end(fact)
        # A rejected file remains after a file with its name was landed.
        if fact.by_person or known.firing.kind == "rejected":
            self.closed[fact.key] = known.last_at

    def resolve_missing(self, observed: Observed) -> None:
        """Resolve open incidents of complete kinds that do not fire."""
        firing = {fact.key for fact in observed.facts if isinstance(fact, Firing)}
        for key, incident in list(self.open.items()):
            if incident.firing.kind in observed.complete and key not in firing:
                self._end(Resolved(key, self.now, "It no longer fires."))

    def remind(self) -> None:
        """Send what was muted or could heal until now, what grew, and what lasts."""
        for key, incident in list(self.open.items()):
            if self._can_heal(incident):
                continue
            if self.state.mute_of(incident.firing.table, self.now):
                if not incident.alerts:
                    self._alert("opened", key)
            elif incident.notified_at is None:
                self._alert("opened", key)
            elif self._has_grown(incident, incident.notified_at):
                self._alert("grew", key)
            elif self._is_due(incident, incident.notified_at):
                self._alert("repeated", key)

    def _end(self, resolved: Resolved) -> None:
        # No message was sent about an incident that healed at once.
        if self.open[resolved.key].alerts:
            self._alert("recovered", resolved.key, resolved)
        del self.open[resolved.key]

    def _can_heal(self, incident: Incident) -> bool:
        is_new = incident.times == 1 and self.now - incident.opened_at < _HEALS_WITHIN
        return incident.firing.heals and is_new and not incident.alerts

    def _has_grown(self, incident: Incident, notified_at: datetime) -> bool:
        growth = incident.firing.size - incident.notified_size
        is_paused = self.now - notified_at < _GROWTH_PAUSE
        return not is_paused and growth > 0 and growth >= incident.notified_size * _GROWTH

    def _is_due(self, incident: Incident, notified_at: datetime) -> bool:
        firing = incident.firing
        if incident.acknowledged or self.now - notified_at < self.repeat_after:
            return False
        lasts = firing.severity == "error" and firing.kind not in _NOTIFIED_ONCE
        return lasts or incident.last_at > notified_at or firing.size > incident.notified_size

    def _alert(self, saying: Saying, key: str, resolved: Resolved | None = None) -> None:
        incident = self.open[key]
        muted = self.state.mute_of(incident.firing.table, self.now)
        # Recipients of an incident also get its resolution.
        if saying == "recovered" and incident.notified_at is not None:
            muted = ""
        self.alerts.append(self._alert_of(saying, incident, muted, resolved))
        self.open[key] = incident.after_alert(self.now, is_muted=bool(muted))

    def _alert_of(
        self, saying: Saying, incident: Incident, muted: str, resolved: Resolved | None
    ) -> Alert:
        # An incident can open again from the same failure, but not after the same round.
        after, firing = self.state.cursors.get("round_at"), incident.firing
        identifier = alert_id(firing.key, after, incident.opened_at, saying, incident.alerts)
        if resolved:
            lines = _resolved_lines(incident, self.now, resolved)
        else:
            lines = _firing_lines(saying, incident, identifier)
        return Alert(
            identifier,
            firing.key,
            saying,
            firing.severity,
            self.now,
            f"{_PREFIXES.get(saying, '')}{firing.title}",
            tuple(filter(None, lines)),
            firing.table,
            firing.owner,
            firing.run_id,
            muted,
            firing.kind,
        )


def _firing_lines(saying: Saying, incident: Incident, identifier: str) -> Iterator[str]:
    firing = incident.firing
    if saying == "grew" and incident.notified_at:
        growth = firing.size - incident.notified_size
        yield f"{growth:,} more since {moment_text(incident.notified_at)}."
    if incident.times > 1:
        yield f"Since {moment_text(incident.opened_at)}, {incident.times} times."
    if incident.acknowledged:
        yield f"Acknowledged by {incident.acknowledged}"
    names = sorted(incident.affected_partitions)
    if len(names) > _SHOWN_PARTITIONS:
        yield f"Partitions: {names[0]} … {names[-1]} ({len(names)})"
    elif names:
        yield f"Partitions: {', '.join(names)}"
    yield from firing.lines
    yield from firing.links
    for command in firing.commands:
        yield f"Next: {command}"
    if firing.kind in _CLOSABLE:
        yield f"Next: lakehouse alerts close {identifier} --why …"


def _resolved_lines(incident: Incident, now: datetime, resolved: Resolved) -> Iterator[str]:
    times = f", {incident.times} times" if incident.times > 1 else ""
    yield resolved.how
    yield f"It lasted from {moment_text(incident.opened_at)} to {moment_text(now)}{times}."
    yield from incident.firing.links
