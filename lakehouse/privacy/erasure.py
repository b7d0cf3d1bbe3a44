"""The state of one call that continues a request to erase people."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from lakehouse.privacy.audit_chain import Action, AuditedAction, append_actions
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.erasure_record import ErasureRecord, is_external, write_record
from lakehouse.privacy.identity import Identity
from lakehouse.privacy.places.scrubbed_place import ScrubbedPlace
from lakehouse.privacy.requests import (
    Request,
    RequestState,
    Unreachable,
    change_request,
)
from lakehouse.privacy.sealed_values import destroy, is_sealed
from lakehouse.privacy.verifier.report import Report
from lakehouse.tables.person import Person


@dataclass(frozen=True)
class How:
    """The options of an erasure."""

    by: str
    why: str = ""
    now: bool = False
    """Whether to remove unreferenced files of any age."""
    erase_whole: tuple[str, ...] = ()
    """Keys or hashes of unreadable delivered files to empty."""
    is_elsewhere_done: bool = False
    """Whether the caller confirms that the places outside of the lakehouse are done."""


@dataclass
class Erasure:
    """A call that continues a request."""

    erasable: Erasable
    request: Request
    how: How
    record: ErasureRecord
    found: tuple[Identity, ...] = field(default=(), repr=False)
    """The people that were found before the request was opened."""
    persons: tuple[Person, ...] = field(default=(), repr=False)
    shared: frozenset[str] = field(default=frozenset(), repr=False)
    """Personal values that a person who remains has too."""
    deleted_at: datetime | None = None
    """When this call had deleted all rows in tables and delivered files."""
    not_emptied: tuple[str, ...] = ()
    """Files that were not emptied as requested."""
    search_report: Report | None = None
    """The search for the people after their erasure, whether it found something or not."""
    is_stopped: bool = False
    """Whether the next steps are skipped: the request is complete, has to wait, or failed its
    search.
    """

    @property
    def failed_search(self) -> Report | None:
        """The search that found something; None without a search, or if it is a proof."""
        return (
            self.search_report
            if self.search_report and not self.search_report.is_proof
            else None
        )

    def keep(self, record: ErasureRecord) -> None:
        """Store the record for the next call."""
        if record != self.record:
            write_record(self.erasable.settings, self.request.request_id, record)
            self.record = record

    def move(
        self,
        state: RequestState,
        *,
        physical_due_at: datetime | None = None,
        unreachable: Sequence[Unreachable] = (),
    ) -> None:
        """Change the state of the request."""
        changed_at = datetime.now(UTC)

        def change(request: Request) -> Request:
            changed = replace(
                request,
                state=state,
                physical_due_at=physical_due_at,
                unreachable=tuple(unreachable),
            )
            return request if changed == request else replace(changed, changed_at=changed_at)

        self.request = change_request(self.erasable.settings, self.request.request_id, change)

    def action(self, action: Action, **parts: object) -> AuditedAction:
        """Return an action of this request for the audit table."""
        return AuditedAction(action, self.request.request_id, self.how.by, **parts)  # type: ignore[arg-type]

    def audit(self, *actions: AuditedAction, occasion: str = "") -> None:
        """Append actions to the audit table, once per occasion."""
        erasable = self.erasable
        name = f"{self.request.request_id}:{occasion or actions[0].action}"
        append_actions(erasable.settings, erasable.engine, erasable.audit, actions, name)

    def note_places(self, found: Sequence[ScrubbedPlace]) -> None:
        """Record the last result of each place outside of tables and delivered files; places of
        other owners are retained.
        """
        by_place = {
            place.place: place
            for place in self.record.places
            if is_external(place) or place.is_done
        }
        for place in found:
            before = by_place.get(place.place)
            values = place.values + (before.values if before else 0)
            by_place[place.place] = replace(place, values=values)
        places = tuple(by_place[name] for name in sorted(by_place))
        self.keep(replace(self.record, places=places))
        self.note_confirmation()

    def note_confirmation(self) -> None:
        """Record the caller's confirmation for the call that completes the request."""
        if self.how.is_elsewhere_done:
            done = tuple(place.place for place in self.record.external_places)
            self.keep(replace(self.record, confirmed_places=done))

    def end(self) -> None:
        """Destroy the values of a completed request."""
        settings, request_id = self.erasable.settings, self.request.request_id
        if is_sealed(settings, request_id):
            self.audit(self.action("values_destroyed"))
        destroy(settings, request_id)
        self.is_stopped = True
