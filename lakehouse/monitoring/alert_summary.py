"""Many messages as one: how many broke and where, what is alike in one line, with numbers and
causes, errors first.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from lakehouse.orchestration.alert_message import Alert, Saying, alert_id

_GROUPS = 10
_NAMED = 3
_SAYINGS: Mapping[Saying, str] = {
    "opened": "broke",
    "grew": "grew",
    "repeated": "still broken",
    "recovered": "over",
}
_BEFORE = {"recovered": "Over: ", "repeated": "Still: ", "grew": "More: "}
_MANY = {
    ("check", "warn"): "checks warn",
    ("check", "error"): "checks failed",
    ("rejected", "error"): "files were rejected",
    ("failed", "error"): "runs failed",
    ("held", "error"): "tables are held back",
    ("late", "error"): "deliveries and tables are late",
    ("automation", "error"): "sensors and schedules fail",
    ("quarantined", "warn"): "tables have rows in quarantine",
}
_OF_ONE_TABLE = ("check", "rejected")
"""What is told table by table; the rest is alike where it has the same cause."""
_EACH_WITH_ITS_OWN = ("held", "late")
"""What is alike whatever its cause is: each table says its own."""


def summary(alerts: Sequence[Alert], now: datetime) -> Alert:
    """Return many messages as one; where all of them are recoveries, it is good news."""
    is_good = all(alert.saying == "recovered" for alert in alerts)
    errors = sum(alert.severity == "error" and alert.saying != "recovered" for alert in alerts)
    groups = _groups(alerts)
    more = len(groups) - _GROUPS
    lines = [
        *([] if is_good else [f"Errors among it: {errors}"]),
        *(f"- {_line(group)}" for group in groups[:_GROUPS]),
        *([f"and {more} more like these."] if more > 0 else []),
        "Next: lakehouse alerts" if is_good else "Next: lakehouse alerts --open",
    ]
    return Alert(
        alert_id("summary", *sorted(alert.alert_id for alert in alerts)),
        "summary",
        "recovered" if is_good else "summary",
        "error" if errors else "warn",
        now,
        (
            f"Good news: {len(alerts)} things are over{_where(alerts)}"
            if is_good
            else _title(alerts)
        ),
        tuple(lines),
    )


def _title(alerts: Sequence[Alert]) -> str:
    counts = Counter(alert.saying for alert in alerts)
    said = ", ".join(
        f"{counts[saying]} {words}" for saying, words in _SAYINGS.items() if counts[saying]
    )
    return f"{len(alerts)} things at once: {said}{_where(alerts)}"


def _where(alerts: Sequence[Alert]) -> str:
    tables = list(dict.fromkeys(alert.table for alert in alerts if alert.table))
    return f", in {_listed(tables)}" if tables else ""


def _groups(alerts: Sequence[Alert]) -> list[list[Alert]]:
    """Return what is alike together: errors first, what is over last, the largest before the
    smaller.
    """
    found: dict[tuple[str, ...], list[Alert]] = {}
    for alert in alerts:
        found.setdefault(_like(alert), []).append(alert)
    return sorted(found.values(), key=_order)


def _like(alert: Alert) -> tuple[str, ...]:
    if alert.kind in _OF_ONE_TABLE:
        return (alert.saying, alert.severity, alert.kind, alert.table)
    if alert.kind in _EACH_WITH_ITS_OWN:
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
        is_said = not first.brief or first.brief in first.title or first.saying == "recovered"
        return first.title if is_said else f"{first.title} ({first.brief})"
    before, many = (
        _BEFORE.get(first.saying, ""),
        _MANY.get((first.kind, first.severity), "things broke"),
    )
    if first.kind in _OF_ONE_TABLE:
        briefs = list(dict.fromkeys(alert.brief for alert in group if alert.brief))
        return (
            f"{before}{first.table}: {len(group)}"
            f" {many}{f', {_listed(briefs)}' if briefs else ''}"
        )
    if first.kind in _EACH_WITH_ITS_OWN:
        return (
            f"{before}{len(group)} {many}: {_listed([_with_its_own(alert) for alert in group])}"
        )
    tables = list(dict.fromkeys(alert.table or alert.title for alert in group))
    return f"{before}{len(group)} {many}: {first.brief} ({_listed(tables)})"


def _with_its_own(alert: Alert) -> str:
    return (
        f"{alert.table} ({alert.brief})"
        if alert.brief and alert.saying != "recovered"
        else alert.table
    )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return f"{', '.join(names[:_NAMED])}{f' and {more} more' if more > 0 else ''}"
