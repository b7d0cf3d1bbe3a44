"""What other parts of the lakehouse reported as firing or resolved, see
`lakehouse.orchestration.incident_reports`.
"""

from collections.abc import Mapping
from typing import Any

from lakehouse.monitoring.detectors.monitor_context import MonitorContext
from lakehouse.monitoring.incidents import Firing, Observed, Resolved
from lakehouse.orchestration.incident_reports import Note, read_reports

CURSOR = "reported"


def detect_reported(context: MonitorContext, cursors: Mapping[str, Any]) -> Observed:
    """Return what was reported since the last round."""
    seen: Mapping[str, str] = cursors.get(CURSOR, {})
    notes = list(read_reports(context.settings))
    news = [note for note in notes if note.at.isoformat() > seen.get(note.report.key, "")]
    last = {note.report.key: note.at.isoformat() for note in notes}
    return Observed(tuple(_fact(context, note) for note in news), cursors={CURSOR: last})


def _fact(context: MonitorContext, note: Note) -> Firing | Resolved:
    report = note.report
    key = f"reported {report.key}"
    if note.resolved:
        return Resolved(key, note.at, note.resolved)
    return Firing(
        key,
        "reported",
        note.at,
        report.severity,
        report.title,
        (*report.lines, *(context.describe_ownership(report.table) if report.table else ())),
        context.links(table=report.table),
        report.commands,
        report.table,
        context.owner(report.table),
    )
