"""What other parts of the lakehouse reported as broken or mended, see
`lakehouse.orchestration.incident_reports`.
"""

from collections.abc import Mapping
from typing import Any

from lakehouse.monitoring.detectors.sources import MonitorContext
from lakehouse.monitoring.incidents import Firing, Observed, Resolved
from lakehouse.orchestration.incident_reports import Note, read_reports

CURSOR = "reported"


def detect_reported(context: MonitorContext, cursors: Mapping[str, Any]) -> Observed:
    """Return what was reported since the last look."""
    seen: Mapping[str, str] = cursors.get(CURSOR, {})
    notes = list(read_reports(context.settings))
    facts = tuple(
        _fact(context, note)
        for note in notes
        if note.at.isoformat() > seen.get(note.report.key, "")
    )
    last = {note.report.key: note.at.isoformat() for note in notes}
    return Observed(facts, cursors={CURSOR: last})


def _fact(context: MonitorContext, note: Note) -> Firing | Resolved:
    said = note.report
    key = f"reported {said.key}"
    if note.resolved:
        return Resolved(key, note.at, note.resolved)
    return Firing(
        key,
        "reported",
        note.at,
        said.severity,
        said.title,
        (*said.lines, *(context.whose(said.table) if said.table else ())),
        context.links(table=said.table),
        said.commands,
        said.table,
        context.owner(said.table),
    )
