"""Which alerts are sent, decided from what is open and what was observed: pure, so that each
case of it can be tried.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lakehouse.monitoring.alert_state import AlertState
from lakehouse.monitoring.alert_text import alert_of
from lakehouse.monitoring.incidents import Firing, Incident, Observed, Resolved
from lakehouse.orchestration.alert import Alert, Saying

SilenceOf = Callable[[str, datetime], str]
"""Says who silenced a table and why; nothing where nobody did."""
_GROWTH = 0.01
"""People are notified again of what grew by this share since; of what grew by less only when it
is repeated.
"""
_GROWTH_PAUSE = timedelta(minutes=5)
_HEALS_WITHIN = timedelta(minutes=2)
"""People are notified of what is tried again by itself where it lasts longer, or fails a second
time.
"""
_NOTIFIED_ONCE = ("rejected",)
"""A file stays rejected until somebody removes it, which nobody has to."""


def plan_alerts(
    state: AlertState,
    observed: Observed,
    now: datetime,
    repeat_after: timedelta,
    silence_of: SilenceOf,
) -> "AlertPlan":
    """Decide which alerts are sent: that something fires, once; that it grew, or still fires
    after a while; and that it is resolved.

    A warning is repeated only where the same fires anew after that while; an error as long as
    it lasts. What a person closed opens again only where it fires anew. Where nothing was
    monitored before, nobody is notified of what fired and was resolved in the past.
    """
    plan = AlertPlan(dict(state.open), dict(state.closed), now, repeat_after, silence_of)
    for fact in sorted(observed.facts, key=lambda fact: (fact.at, isinstance(fact, Resolved))):
        if isinstance(fact, Firing):
            plan.firing(fact)
        else:
            plan.resolved(fact)
    plan.close_what_is_gone(observed)
    plan.remind()
    if state.is_first:
        plan.alerts = [alert for alert in plan.alerts if alert.key in plan.open]
    return plan


def plan_resolved(
    state: AlertState, resolved: Resolved, now: datetime, silence_of: SilenceOf
) -> "AlertPlan":
    """Decide which alerts are sent of an incident that a person ends, and of no other."""
    plan = AlertPlan(dict(state.open), dict(state.closed), now, timedelta.max, silence_of)
    plan.resolved(resolved)
    return plan


@dataclass
class AlertPlan:
    """What is open, what a person closed, and which alerts are sent, in order."""

    open: dict[str, Incident]
    closed: dict[str, datetime]
    now: datetime
    repeat_after: timedelta
    silence_of: SilenceOf
    alerts: list[Alert] = field(default_factory=list)

    def firing(self, fact: Firing) -> None:
        if fact.key in self.closed and fact.at <= self.closed[fact.key]:
            return
        self.closed.pop(fact.key, None)
        known = self.open.get(fact.key)
        self.open[fact.key] = known.after_firing(fact) if known else Incident.of(fact)
        if known is None and not self._may_heal(self.open[fact.key]):
            self._alert("opened", fact.key)

    def resolved(self, fact: Resolved) -> None:
        known = self.open.get(fact.key)
        if known is None:
            return
        still_open = known.after_resolved(fact)
        if still_open is not None:
            self.open[fact.key] = still_open
            return
        self._end(fact.key, fact)
        if fact.by_person:
            self.closed[fact.key] = known.last_at

    def close_what_is_gone(self, observed: Observed) -> None:
        seen = {fact.key for fact in observed.facts if isinstance(fact, Firing)}
        for key, incident in list(self.open.items()):
            if incident.firing.kind in observed.complete and key not in seen:
                self._end(key, Resolved(key, self.now, "It is not so any more."))

    def remind(self) -> None:
        for key, incident in list(self.open.items()):
            if self._may_heal(incident):
                continue
            if self.silence_of(incident.firing.table, self.now):
                # The record has also what is sent to nobody.
                if not incident.alerts:
                    self._alert("opened", key)
            elif incident.notified_at is None:
                self._alert("opened", key)
            elif self._has_grown(incident, incident.notified_at):
                self._alert("grew", key)
            elif self._is_due(incident, incident.notified_at):
                self._alert("repeated", key)

    def _end(self, key: str, resolved: Resolved) -> None:
        # Of what healed before anybody was notified, nobody is notified that it is resolved.
        if self.open[key].alerts:
            self._alert("recovered", key, resolved)
        del self.open[key]

    def _may_heal(self, incident: Incident) -> bool:
        is_new = incident.times == 1 and self.now - incident.opened_at < _HEALS_WITHIN
        return incident.firing.heals and is_new and not incident.alerts

    def _has_grown(self, incident: Incident, notified_at: datetime) -> bool:
        if self.now - notified_at < _GROWTH_PAUSE:
            return False
        growth = incident.firing.size - incident.notified_size
        has_new_causes = bool(set(incident.firing.causes) - set(incident.notified_causes))
        return growth > 0 and (has_new_causes or growth >= incident.notified_size * _GROWTH)

    def _is_due(self, incident: Incident, notified_at: datetime) -> bool:
        if incident.acknowledged:
            return False
        is_anew = (
            incident.last_at > notified_at or incident.firing.size > incident.notified_size
        )
        lasts = (
            incident.firing.severity == "error" and incident.firing.kind not in _NOTIFIED_ONCE
        )
        return self.now - notified_at >= self.repeat_after and (lasts or is_anew)

    def _alert(self, saying: Saying, key: str, resolved: Resolved | None = None) -> None:
        incident = self.open[key]
        muted = self._muted(saying, incident)
        self.alerts.append(alert_of(saying, incident, self.now, muted, resolved))
        self.open[key] = incident.after_alert(self.now, is_muted=bool(muted))

    def _muted(self, saying: Saying, incident: Incident) -> str:
        # Who was notified of an incident is notified of its end, whatever was silenced since.
        if saying == "recovered" and incident.notified_at is not None:
            return ""
        return self.silence_of(incident.firing.table, self.now)
