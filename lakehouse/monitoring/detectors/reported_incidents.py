"""What other parts of the lakehouse reported as firing or resolved, see
`lakehouse.orchestration.incident_reports`.
"""

from collections.abc import Mapping

from lakehouse.monitoring.detectors.monitor_context import MonitorContext
from lakehouse.monitoring.incidents import Firing, Observed, Resolved
from lakehouse.orchestration.incident_reports import Note, read_reports

CURSOR = "reported"


def detect_reported(context: MonitorContext) -> Observed:
    """Return what was reported since the last round."""
    seen: Mapping[str, str] = context.state.cursors.get(CURSOR, {})
    notes = [*read_reports(context.settings)]
    news = [note for note in notes if note.at.isoformat() > seen.get(note.report.key, "")]
    last = {note.report.key: note.at.isoformat() for note in notes}
    return Observed(tuple(_fact(context, note) for note in news), cursors={CURSOR: last})


def _fact(context: MonitorContext, note: Note) -> Firing | Resolved:
    report = note.report
    key = f"reported {report.key}"
    if note.resolved:
        return Resolved(key, note.at, note.resolved)
    return context.firing(
        key,
        "reported",
        note.at,
        report.title,
        lines=report.lines,
        commands=report.commands,
        severity=report.severity,
        table=report.table,
    )
