"""What other parts of the lakehouse reported as broken or mended, see `lakehouse.orchestration.incident_reports`."""

from collections.abc import Mapping
from typing import Any

from lakehouse.monitoring.detectors.sources import Lookout
from lakehouse.monitoring.incidents import Broke, Mended, Observed
from lakehouse.orchestration.incident_reports import Note, read_reports

CURSOR = "reported"


def look_at_reports(lookout: Lookout, cursors: Mapping[str, Any]) -> Observed:
    """Return what was reported since the last look."""
    seen: Mapping[str, str] = cursors.get(CURSOR, {})
    notes = list(read_reports(lookout.settings))
    facts = tuple(_fact(lookout, note) for note in notes if note.at.isoformat() > seen.get(note.report.key, ""))
    last = {note.report.key: note.at.isoformat() for note in notes}
    return Observed(facts, cursors={CURSOR: last})


def _fact(lookout: Lookout, note: Note) -> Broke | Mended:
    said = note.report
    key = f"reported {said.key}"
    if note.mended:
        return Mended(key, note.at, note.mended)
    return Broke(
        key,
        "reported",
        note.at,
        said.severity,
        said.title,
        (*said.lines, *(lookout.whose(said.table) if said.table else ())),
        lookout.links(table=said.table),
        said.commands,
        said.table,
        lookout.owner(said.table),
    )
