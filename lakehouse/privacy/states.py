"""A request to erase people, and the states that it goes through; values without behaviour, and
no value of a person among them.

    requested ─┬─> logically_deleted ──> pending_physical ──> verified
               └─> not_found         (each but the last two may be an exception meanwhile)
"""

import calendar
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Literal

from lakehouse.errors import LakehouseError

RequestState = Literal[
    "requested", "logically_deleted", "pending_physical", "verified", "exception", "not_found"
]
_NEXT: dict[RequestState, tuple[RequestState, ...]] = {
    "requested": ("logically_deleted", "not_found", "exception"),
    "logically_deleted": ("pending_physical", "verified", "exception"),
    "pending_physical": ("pending_physical", "verified", "exception"),
    "exception": ("exception", "logically_deleted", "pending_physical", "verified"),
    "verified": (),
    "not_found": (),
}
FINAL: tuple[RequestState, ...] = ("verified", "not_found")


@dataclass(frozen=True)
class RequestedPerson:
    """A person that a request names: what they were named by, and the keyed hash of it."""

    column: str
    hmac: str


@dataclass(frozen=True)
class Unreachable:
    """A place that may have people of a request and cannot be reached, and who sees to it until
    when.
    """

    place: str
    owner: str
    until: date


@dataclass(frozen=True)
class Request:
    """A request, and how far it is. No value of a person is in it, but for what somebody writes
    into `why`.
    """

    request_id: str
    people: tuple[RequestedPerson, ...]
    why: str
    requested_by: str
    requested_at: datetime
    due_at: datetime
    """A month after it was made, as the law has it (GDPR, article 12, 3)."""
    state: RequestState = "requested"
    changed_at: datetime | None = None
    physical_due_at: datetime | None = None
    """When what waits for its time (old snapshots, orphan files) can be removed."""
    unreachable: tuple[Unreachable, ...] = field(default=())

    @property
    def is_final(self) -> bool:
        """Whether nothing is left to do."""
        return self.state in FINAL

    def is_late(self, now: datetime) -> bool:
        """Whether it should have been done by now."""
        return not self.is_final and now > self.due_at


def plan_transition(
    request: Request,
    state: RequestState,
    now: datetime,
    *,
    physical_due_at: datetime | None = None,
    unreachable: Sequence[Unreachable] = (),
) -> Request:
    """Return a request in another state; the same again where it is in that state already.

    :param physical_due_at: when what is pending can be removed; `pending_physical` alone has
        it.
    :param unreachable: what cannot be reached; `exception` alone has it.
    :raises LakehouseError: when the one state does not follow the other.
    """
    changed = replace(
        request,
        state=state,
        changed_at=now,
        physical_due_at=physical_due_at if state == "pending_physical" else None,
        unreachable=tuple(unreachable) if state == "exception" else (),
    )
    if replace(changed, changed_at=request.changed_at) == request:
        return request
    if state not in _NEXT[request.state]:
        expected = ", ".join(_NEXT[request.state]) or "no other, since it is done"
        raise LakehouseError(
            f"Request {request.request_id} is {request.state}, and cannot become {state};"
            f" expected {expected}."
        )
    return changed


def a_month_after(moment: datetime) -> datetime:
    """Return the same time of the same day a month later; the last day of a month that has no
    such day.
    """
    year, month = moment.year + moment.month // 12, moment.month % 12 + 1
    day = min(moment.day, calendar.monthrange(year, month)[1])
    return moment.replace(year=year, month=month, day=day)
