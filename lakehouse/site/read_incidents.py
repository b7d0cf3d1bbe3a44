"""What is open now, for those who only read: no sample of a row, and no name of a delivered
file.
"""

from collections.abc import Mapping

from lakehouse.alerts.alert_state import read_state
from lakehouse.alerts.incidents import Incident
from lakehouse.settings import Settings
from lakehouse.site.facts import IncidentFacts

_WORDED: Mapping[str, str] = {"rejected": "A delivered file was rejected"}
"""What is said of kinds whose titles name what somebody delivered."""
_NOT_TOLD = frozenset({"erasure"})
"""That somebody asked to be erased concerns no reader of tables."""


def read_incidents(settings: Settings) -> tuple[IncidentFacts, ...]:
    """Return the incidents that are open, the oldest first."""
    incidents = [
        _facts(incident)
        for incident in read_state(settings).open.values()
        if incident.firing.kind not in _NOT_TOLD
    ]
    return tuple(sorted(incidents, key=lambda facts: (facts.opened_at, facts.title)))


def _facts(incident: Incident) -> IncidentFacts:
    firing = incident.firing
    return IncidentFacts(
        _WORDED.get(firing.kind, firing.title),
        firing.kind,
        firing.severity,
        incident.opened_at,
        incident.times,
        bool(incident.acknowledged),
        firing.table,
        incident.url,
    )
