"""What is to be said, decided from what is open and what was seen: pure, so that each case of it can be tried."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from lakehouse.monitoring.incidents import Broke, Incident, Mended, Observed, moment_text
from lakehouse.resources.alert import Alert, Saying, alert_id

MuteOf = Callable[[str, datetime], str]
"""Says who muted a table and why; nothing where nobody did."""
_SHOWN_PARTITIONS = 5
_TOLD_ONCE = ("rejected",)
"""A file stays rejected until somebody takes it away, which nobody has to."""


@dataclass(frozen=True)
class Planned:
    """What is to be said, in order, and what is open after it."""

    alerts: tuple[Alert, ...]
    open: Mapping[str, Incident]


def plan_alerts(
    open_now: Mapping[str, Incident],
    observed: Observed,
    now: datetime,
    repeat_after: timedelta,
    mute_of: MuteOf = lambda _table, _now: "",
    *,
    is_first: bool = False,
) -> Planned:
    """Decide what to say: that something broke, once; that it still is, after a while; and that it is over.

    A warning is repeated only where the same breaks anew after that while; an error as long as it lasts.

    :param is_first: whether nobody looked before; what broke and was mended in the past is then not told.
    """
    plan = _Plan(dict(open_now), now, repeat_after, mute_of)
    for fact in sorted(observed.facts, key=lambda fact: (fact.at, isinstance(fact, Mended))):
        if isinstance(fact, Broke):
            plan.broke(fact)
        else:
            plan.mended(fact)
    plan.close_what_is_gone(observed)
    plan.remind()
    alerts = [alert for alert in plan.alerts if not is_first or alert.key in plan.open]
    return Planned(tuple(alerts), plan.open)


@dataclass
class _Plan:
    open: dict[str, Incident]
    now: datetime
    repeat_after: timedelta
    mute_of: MuteOf
    alerts: list[Alert] = field(default_factory=list)

    def broke(self, fact: Broke) -> None:
        known = self.open.get(fact.key)
        self.open[fact.key] = known.again(fact) if known else Incident.of(fact)
        if known is None:
            self._say("opened", fact.key)

    def mended(self, fact: Mended) -> None:
        known = self.open.get(fact.key)
        if known is None:
            return
        left = known.without(fact)
        if left is None:
            self._say("recovered", fact.key, fact.said)
            del self.open[fact.key]
        else:
            self.open[fact.key] = left

    def close_what_is_gone(self, observed: Observed) -> None:
        seen = {fact.key for fact in observed.facts if isinstance(fact, Broke)}
        for key, incident in list(self.open.items()):
            if incident.broke.kind in observed.complete and key not in seen:
                self._say("recovered", key, "It is not so any more.")
                del self.open[key]

    def remind(self) -> None:
        for key, incident in list(self.open.items()):
            if self.mute_of(incident.broke.table, self.now):
                continue
            if incident.told_at is None:
                self._say("opened", key)
            elif self._is_due(incident, incident.told_at):
                self._say("repeated", key)

    def _is_due(self, incident: Incident, told_at: datetime) -> bool:
        is_anew = incident.last_at > told_at
        lasts = incident.broke.severity == "error" and incident.broke.kind not in _TOLD_ONCE
        return self.now - told_at >= self.repeat_after and (lasts or is_anew)

    def _say(self, saying: Saying, key: str, how: str = "") -> None:
        incident = self.open[key]
        muted = self.mute_of(incident.broke.table, self.now)
        self.alerts.append(_alert(saying, incident, self.now, muted, how))
        told_at = incident.told_at if muted else self.now
        self.open[key] = replace(incident, told_at=told_at, alerts=incident.alerts + 1)


def _alert(saying: Saying, incident: Incident, now: datetime, muted: str, how: str) -> Alert:
    broke = incident.broke
    title = {
        "recovered": f"Over: {broke.title}",
        "repeated": f"Still: {broke.title}",
    }.get(saying, broke.title)
    if saying == "recovered":
        lines = (*_over(incident, now, how), *broke.links)
    else:
        nexts = (f"Next: {command}" for command in broke.commands)
        lines = (*_since(incident), *broke.lines, *broke.links, *nexts)
    return Alert(
        alert_id(broke.key, incident.opened_at, saying, incident.alerts),
        broke.key,
        saying,
        broke.severity,
        now,
        title,
        tuple(line for line in lines if line),
        broke.table,
        broke.owner,
        broke.run_id,
        muted,
    )


def _since(incident: Incident) -> list[str]:
    said = []
    if incident.times > 1:
        said.append(f"Since {moment_text(incident.opened_at)}, seen {incident.times} times.")
    if incident.extent:
        said.append(f"Partitions: {partitions(incident.extent)}")
    return said


def _over(incident: Incident, now: datetime, how: str) -> list[str]:
    times = f", seen {incident.times} times" if incident.times > 1 else ""
    return [how, f"It was so from {moment_text(incident.opened_at)} until {moment_text(now)}{times}."]


def partitions(extent: frozenset[str]) -> str:
    """Name some partitions; of many the first and the last."""
    names = sorted(extent)
    if len(names) <= _SHOWN_PARTITIONS:
        return ", ".join(names)
    return f"{names[0]} … {names[-1]} ({len(names)})"
