"""How an alert is worded: its title and its lines, for what fires and for what is resolved.

What a detector saw brings the title, the facts and the commands; here is what stands around them.
"""

from datetime import datetime

from lakehouse.monitoring.incidents import Incident, Resolved, moment_text
from lakehouse.orchestration.alert import Alert, Saying, alert_id

_SHOWN_PARTITIONS = 5
_CLOSED_BY_PEOPLE = ("quarantined", "rejected", "upkeep")
"""What may stay as it is for ever without harm."""
BEFORE_TITLE = {"recovered": "Resolved: ", "repeated": "Still firing: ", "grew": "More: "}


def alert_of(
    saying: Saying, incident: Incident, now: datetime, muted: str, resolved: Resolved | None
) -> Alert:
    """Word the alert of an incident.

    :param muted: who silenced the table and why; nothing where nobody did.
    :param resolved: how it ended; None as long as it is open.
    """
    firing = incident.firing
    identifier = alert_id(firing.key, incident.opened_at, saying, incident.alerts)
    lines = _firing_lines(saying, incident, identifier)
    if resolved:
        lines = _resolved_lines(incident, now, resolved)
    return Alert(
        identifier,
        firing.key,
        saying,
        firing.severity,
        now,
        f"{BEFORE_TITLE.get(saying, '')}{firing.title}",
        tuple(line for line in lines if line),
        firing.table,
        firing.owner,
        firing.run_id,
        muted,
        firing.kind,
        firing.brief,
    )


def _firing_lines(saying: Saying, incident: Incident, identifier: str) -> list[str]:
    firing = incident.firing
    commands = list(firing.commands)
    if firing.kind in _CLOSED_BY_PEOPLE:
        commands.append(f"lakehouse alerts close {identifier} --why …")
    growth = _growth(incident) if saying == "grew" else ""
    next_steps = [f"Next: {command}" for command in commands]
    return [growth, *_since(incident), *firing.lines, *firing.links, *next_steps]


def _growth(incident: Incident) -> str:
    since = f" since {moment_text(incident.notified_at)}" if incident.notified_at else ""
    return f"{incident.firing.size - incident.notified_size:,} more came{since}."


def _since(incident: Incident) -> list[str]:
    lines = []
    if incident.times > 1:
        lines.append(f"Since {moment_text(incident.opened_at)}, seen {incident.times} times.")
    if incident.acknowledged:
        lines.append(f"Acknowledged by {incident.acknowledged}")
    if incident.affected_partitions:
        lines.append(f"Partitions: {_name_partitions(incident.affected_partitions)}")
    return lines


def _resolved_lines(incident: Incident, now: datetime, resolved: Resolved) -> list[str]:
    times = f", seen {incident.times} times" if incident.times > 1 else ""
    lasted = (
        f"It was so from {moment_text(incident.opened_at)} until {moment_text(now)}{times}."
    )
    return [resolved.how, lasted, *(resolved.links or incident.firing.links)]


def _name_partitions(affected_partitions: frozenset[str]) -> str:
    """Name some partitions; of many the first and the last."""
    names = sorted(affected_partitions)
    if len(names) <= _SHOWN_PARTITIONS:
        return ", ".join(names)
    return f"{names[0]} … {names[-1]} ({len(names)})"
