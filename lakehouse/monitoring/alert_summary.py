"""Many messages as one: how many fire and where, what is alike in one line, with numbers and
causes, errors first.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from lakehouse.monitoring.alert_text import BEFORE_TITLE
from lakehouse.orchestration.alert import Alert, Saying, alert_id

_GROUPS = 10
_NAMED = 3
_SAYINGS: Mapping[Saying, str] = {
    "opened": "firing",
    "grew": "grew",
    "repeated": "still firing",
    "recovered": "resolved",
}
_MANY = {
    ("check", "warn"): "checks warn",
    ("check", "error"): "checks failed",
    ("rejected", "error"): "files were rejected",
    ("failed", "error"): "runs failed",
    ("blocked", "error"): "tables are blocked",
    ("overdue", "error"): "deliveries and tables are overdue",
    ("automation", "error"): "sensors and schedules fail",
    ("upkeep", "error"): "steps of upkeep failed",
    ("upkeep", "warn"): "steps of upkeep left something behind",
    ("erasure", "error"): "requests to erase people are late or fail",
    ("erasure", "warn"): "requests to erase people are due soon",
    ("quarantined", "warn"): "tables have rows in quarantine",
}
_OF_ONE_TABLE = ("check", "rejected")
"""What is summed up table by table; the rest is alike where it has the same cause."""
_BY_KIND = ("blocked", "overdue")
"""What is alike whatever its cause is: each table is named with its own."""


def summarize(alerts: Sequence[Alert], now: datetime) -> Alert:
    """Return many messages as one; where all of them are resolved, it says so."""
    is_resolved = all(alert.saying == "recovered" for alert in alerts)
    errors = sum(alert.severity == "error" and alert.saying != "recovered" for alert in alerts)
    groups = _groups(alerts)
    more = len(groups) - _GROUPS
    lines = [] if is_resolved else [f"Errors among it: {errors}"]
    lines += [f"- {_line(group)}" for group in groups[:_GROUPS]]
    if more > 0:
        lines.append(f"and {more} more like these.")
    lines.append("Next: lakehouse alerts" + ("" if is_resolved else " --open"))
    return Alert(
        alert_id("summary", *sorted(alert.alert_id for alert in alerts)),
        "summary",
        "recovered" if is_resolved else "summary",
        "error" if errors else "warn",
        now,
        f"Resolved: {len(alerts)} incidents{_where(alerts)}" if is_resolved else _title(alerts),
        tuple(lines),
    )


def _title(alerts: Sequence[Alert]) -> str:
    counts = Counter(alert.saying for alert in alerts)
    parts = [f"{counts[saying]} {word}" for saying, word in _SAYINGS.items() if counts[saying]]
    return f"{len(alerts)} alerts at once: {', '.join(parts)}{_where(alerts)}"


def _where(alerts: Sequence[Alert]) -> str:
    tables = _distinct(alert.table for alert in alerts)
    return f", in {_listed(tables)}" if tables else ""


def _groups(alerts: Sequence[Alert]) -> list[list[Alert]]:
    """Return what is alike together: errors first, what is resolved last, the largest before
    the smaller.
    """
    groups: dict[tuple[str, ...], list[Alert]] = {}
    for alert in alerts:
        groups.setdefault(_like(alert), []).append(alert)
    return sorted(groups.values(), key=_order)


def _like(alert: Alert) -> tuple[str, ...]:
    if alert.kind in _OF_ONE_TABLE:
        return (alert.saying, alert.severity, alert.kind, alert.table)
    if alert.kind in _BY_KIND:
        return (alert.saying, alert.severity, alert.kind)
    if (alert.kind, alert.severity) in _MANY and alert.brief and alert.kind != "quarantined":
        return (alert.saying, alert.severity, alert.kind, "", alert.brief)
    return (alert.alert_id,)


def _order(group: Sequence[Alert]) -> tuple[bool, bool, int]:
    first = group[0]
    return (first.saying == "recovered", first.severity != "error", -len(group))


def _line(group: Sequence[Alert]) -> str:
    first = group[0]
    if len(group) == 1:
        is_in_title = not first.brief or first.brief in first.title
        if is_in_title or first.saying == "recovered":
            return first.title
        return f"{first.title} ({first.brief})"
    before = BEFORE_TITLE.get(first.saying, "")
    many = f"{len(group)} {_MANY.get((first.kind, first.severity), 'incidents')}"
    if first.kind in _OF_ONE_TABLE:
        briefs = _distinct(alert.brief for alert in group)
        causes = f", {_listed(briefs)}" if briefs else ""
        return f"{before}{first.table}: {many}{causes}"
    if first.kind in _BY_KIND:
        return f"{before}{many}: {_listed([_table_with_brief(alert) for alert in group])}"
    tables = _distinct(alert.table or alert.title for alert in group)
    return f"{before}{many}: {first.brief} ({_listed(tables)})"


def _table_with_brief(alert: Alert) -> str:
    if not alert.brief or alert.saying == "recovered":
        return alert.table
    return f"{alert.table} ({alert.brief})"


def _distinct(texts: Iterable[str]) -> list[str]:
    """Return the texts that say something, each once."""
    return list(dict.fromkeys(filter(None, texts)))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
