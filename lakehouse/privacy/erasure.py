"""One call that carries a request to erase people on: how it is made, what it knows, and how far
the request is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from lakehouse.privacy.audit_chain import Action, AuditedAction, append_actions
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.erasure_record import ErasureRecord, is_elsewhere, write_record
from lakehouse.privacy.identity import Identity
from lakehouse.privacy.places.scrubbed_place import ScrubbedPlace
from lakehouse.privacy.requests import change_request
from lakehouse.privacy.sealed_values import destroy, is_sealed
from lakehouse.privacy.states import Request, RequestState, Unreachable, plan_transition
from lakehouse.privacy.verifier.report import Report
from lakehouse.tables.person import Person


@dataclass(frozen=True)
class How:
    """How people are erased."""

    by: str
    why: str = ""
    now: bool = False
    """Whether files that nothing names go whatever their age."""
    erase_whole: tuple[str, ...] = ()
    """Keys or hashes of delivered files that nobody can read, which are emptied."""
    is_elsewhere_done: bool = False
    """Whether somebody saw to the places that the lakehouse does not reach."""


@dataclass
class Erasure:
    """One call that carries a request on."""

    erasable: Erasable
    request: Request
    how: How
    record: ErasureRecord
    found: tuple[Identity, ...] = field(default=(), repr=False)
    """Who was found as the request was opened."""
    persons: tuple[Person, ...] = field(default=(), repr=False)
    shared: frozenset[str] = field(default=frozenset(), repr=False)
    gone_at: datetime | None = None
    """Since when, in this call, no table and no delivered file has them."""
    not_emptied: tuple[str, ...] = ()
    """Files that were to be emptied and were not, each with why."""
    proof: Report | None = None
    is_over: bool = False
    """Whether this call has nothing left to do."""

    @property
    def failed_proof(self) -> Report | None:
        """The search that proved nothing; None where there was none, or it proved that the
        people are gone.
        """
        return self.proof if self.proof and not self.proof.is_proof else None

    def keep(self, record: ErasureRecord) -> None:
        """Keep what was done, for the next call."""
        if record != self.record:
            write_record(self.erasable.settings, self.request.request_id, record)
            self.record = record

    def move(self, state: RequestState, **said: datetime | Sequence[Unreachable]) -> None:
        """Bring the request into a state."""
        now = datetime.now(UTC)

        def change(request: Request) -> Request:
            return plan_transition(request, state, now, **said)  # type: ignore[arg-type]

        self.request = change_request(self.erasable.settings, self.request.request_id, change)

    def audit(self, action: Action, *, occasion: str = "", **parts: object) -> None:
        """Append what was done to the audit table, once for each occasion."""
        audited = AuditedAction(action, self.request.request_id, self.how.by, **parts)  # type: ignore[arg-type]
        self.audit_all(occasion or action, [audited])

    def audit_all(self, occasion: str, actions: Sequence[AuditedAction]) -> None:
        """Append several actions of one occasion."""
        erasable = self.erasable
        name = f"{self.request.request_id}:{occasion}"
        append_actions(erasable.settings, erasable.engine, erasable.audit, actions, name)

    def note_places(self, found: Sequence[ScrubbedPlace]) -> None:
        """Keep the last that is known of each place outside of tables and delivered files."""
        places = _with_places(self.record.places, found)
        self.keep(replace(self.record, places=places))
        self.note_elsewhere()

    def note_elsewhere(self) -> None:
        """Keep which places outside somebody saw to, for the call that ends the request."""
        if self.how.is_elsewhere_done:
            seen_to = tuple(place.place for place in self.record.elsewhere)
            self.keep(replace(self.record, seen_to=seen_to))

    def end(self) -> None:
        """Destroy the values of a request that is done; this call has nothing left to do."""
        settings, request_id = self.erasable.settings, self.request.request_id
        if is_sealed(settings, request_id):
            self.audit("values_destroyed")
        destroy(settings, request_id)
        self.is_over = True


def _with_places(
    known: Sequence[ScrubbedPlace], found: Sequence[ScrubbedPlace]
) -> tuple[ScrubbedPlace, ...]:
    """Return the last that is known of each place. What somebody else has to see to stays, also
    where nothing leads there any more.
    """
    by_place = {place.place: place for place in known if is_elsewhere(place) or place.is_done}
    for place in found:
        before = by_place.get(place.place)
        values = place.values + (before.values if before else 0)
        by_place[place.place] = replace(place, values=values)
    return tuple(by_place[name] for name in sorted(by_place))
