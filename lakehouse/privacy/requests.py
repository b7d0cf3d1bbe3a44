"""Requests to erase people, and their states; no value of a person is in them.

requested ─┬─> logically_deleted ──> pending_physical ──> verified
           └─> not_found         (all but the last two can be an exception in between)
"""

import calendar
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import dagster as dg

from lakehouse.errors import UsageError
from lakehouse.orchestration.runs.erasure_runs import JOB, REQUEST_TAG
from lakehouse.orchestration.runs.run_result import FINISHED
from lakehouse.privacy.audit_chain import AuditedAction, append_actions
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.erasure_record import read_record
from lakehouse.privacy.folder import check_request_id, hmac_key, requests_folder
from lakehouse.privacy.holders import subject_of
from lakehouse.privacy.identity import Named
from lakehouse.privacy.sealed_values import SealedValues, seal
from lakehouse.privacy.suppressed_people import allow_again, read_suppressed
from lakehouse.settings import Settings
from lakehouse.storage.file_lock import brief_lock
from lakehouse.storage.json_files import read_json, write_json
from lakehouse.tables.person import Person, is_distinctive, person_hmac

_NO_REQUEST = "allow"
"""The request id in the audit table: the decision belongs to no request."""


def allow_people(erasable: Erasable, named: Sequence[Named], *, by: str, why: str) -> None:
    """Allow new rows of erased people.

    :raises UsageError: if a person is not on the suppression list, or an unfinished request would
        erase new rows; then none is allowed. It contains no value.
    """
    settings, now = erasable.settings, datetime.now(UTC)
    key = hmac_key(settings, is_needed=True)
    listed = read_suppressed(settings).erased_at
    unfinished = {
        digest: request.request_id
        for request in read_requests(settings)
        if not request.is_final
        for digest in read_record(settings, request.request_id).hmacs
    }
    allowed = []
    for number, one in enumerate(named, start=1):
        subject = subject_of(erasable.subjects, Person(one.column, frozenset()))
        is_id = one.column.lower() in subject.names
        names = sorted(subject.names) if is_id else [one.column.lower()]
        digests = {name: person_hmac(key, name, one.value) for name in names}
        actions = [
            AuditedAction("allowed_again", _NO_REQUEST, by, name, digest)
            for name, digest in digests.items()
            if bytes.fromhex(digest) in listed
        ]
        if not actions:
            raise UsageError(
                f"Person {number}, named by {one.column}, is not on the list of erased people;"
                " expected an id as it was erased.",
                next_step="`lakehouse erasures` lists the requests.",
            )
        for digest in unfinished.keys() & set(digests.values()):
            raise UsageError(
                f"Person {number}, named by {one.column}, is being erased by request"
                f" {unfinished[digest]}, which would erase new rows too; expected it to be"
                " verified.",
                next_step=f"Complete it by `lakehouse erase --request {unfinished[digest]}`.",
            )
        allowed.append((digests, actions))
    for number, (digests, actions) in enumerate(allowed, start=1):
        occasion = f"allow-{now:%Y%m%dT%H%M%S.%f}-{number}"
        append_actions(settings, erasable.engine, erasable.audit, actions, occasion, now=now)
        allow_again(settings, digests.values(), by=by, why=why)


RequestState = Literal[
    "requested", "logically_deleted", "pending_physical", "verified", "exception", "not_found"
]


@dataclass(frozen=True)
class RequestedPerson:
    """A named person: the column, and the keyed hash of the value."""

    column: str
    hmac: str


@dataclass(frozen=True)
class Unreachable:
    """A place that can contain people of a request and cannot be erased; its operator has to
    handle it.
    """

    place: str


@dataclass(frozen=True)
class Request:
    """A request and its state."""

    request_id: str
    people: tuple[RequestedPerson, ...]
    why: str
    requested_by: str
    requested_at: datetime
    due_at: datetime
    """A month after it was made (GDPR, article 12, 3)."""
    state: RequestState = "requested"
    changed_at: datetime | None = None
    physical_due_at: datetime | None = None
    """When retained files (old snapshots, orphans) can be removed."""
    unreachable: tuple[Unreachable, ...] = ()

    @property
    def is_final(self) -> bool:
        """Whether nothing remains to be done."""
        return self.state in ("verified", "not_found")

    def is_late(self, now: datetime) -> bool:
        """Return whether it should have been done by now."""
        return not self.is_final and now > self.due_at


def open_request(
    settings: Settings,
    request_id: str,
    named: Sequence[Named],
    *,
    why: str,
    by: str,
    now: datetime | None = None,
) -> Request:
    """Return the request with an id; if there is none, create it and seal its values.

    :raises UsageError: if it names other people, or if its id or reason contains a value. No
        value is in the error.
    """
    check_request_id(request_id)
    _check_texts(request_id, why, named)
    people = _requested_people(settings, named)
    with _lock(settings):
        if _file(settings, request_id).is_file():
            known = read_request(settings, request_id)
            if known.people != people:
                raise UsageError(
                    f"Request {request_id} names other people; expected the same ones with the"
                    " same columns.",
                    next_step="Use another id for this request.",
                )
            return known
        requested_at = now or datetime.now(UTC)
        request = Request(
            request_id, people, why, by, requested_at, a_month_after(requested_at)
        )
        # The values first, so that each stored request has them.
        seal(
            settings, request_id, SealedValues(tuple((one.column, one.value) for one in named))
        )
        write_json(_file(settings, request_id), request, Request, indent=1)
        return request


def read_request(settings: Settings, request_id: str) -> Request:
    """Return a request by its id.

    :raises UsageError: if there is none.
    """
    check_request_id(request_id)
    file = _file(settings, request_id)
    if not file.is_file():
        raise UsageError(
            f"There is no request {request_id}.",
            next_step="`lakehouse erasures` lists them.",
        )
    request: Request = read_json(file, Request)
    return request


def read_requests(settings: Settings) -> list[Request]:
    """Return all requests, oldest first."""
    # macOS writes files that start with `._` to some disks.
    files = (settings.home / "privacy" / "requests").glob("[!.]*.json")
    requests: list[Request] = [read_json(file, Request) for file in files]
    return sorted(requests, key=lambda request: (request.requested_at, request.request_id))


def change_request(
    settings: Settings, request_id: str, change: Callable[[Request], Request]
) -> Request:
    """Change a request under a lock, and return the new state."""
    with _lock(settings):
        request = read_request(settings, request_id)
        changed = change(request)
        if changed != request:
            write_json(_file(settings, request_id), changed, Request, indent=1)
        return changed


def a_month_after(start: datetime) -> datetime:
    """Return the same day of the next month, or its last day."""
    year, month = start.year + start.month // 12, start.month % 12 + 1
    day = min(start.day, calendar.monthrange(year, month)[1])
    return start.replace(year=year, month=month, day=day)


def _check_texts(request_id: str, why: str, named: Iterable[Named]) -> None:
    """Check that texts that are retained contain no value that is erased."""
    for text, what in ((request_id, "The id of the request"), (why, "The reason")):
        for one in named:
            value = one.value.strip()
            if text == value or (is_distinctive(value) and value.casefold() in text.casefold()):
                raise UsageError(
                    f"{what} contains the {one.column} that is to be erased, and is retained;"
                    " expected a text without it."
                )


def _requested_people(
    settings: Settings, named: Iterable[Named]
) -> tuple[RequestedPerson, ...]:
    key = hmac_key(settings)
    columns = {(one.column.lower(), one.value) for one in named}
    people = {(column, person_hmac(key, column, value)) for column, value in columns}
    return tuple(RequestedPerson(column, digest) for column, digest in sorted(people))


def _file(settings: Settings, request_id: str) -> Path:
    return requests_folder(settings) / f"{request_id}.json"


def _lock(settings: Settings) -> AbstractContextManager[None]:
    return brief_lock(requests_folder(settings) / ".lock")


RETRY_AFTER = timedelta(days=1)
"""Pause after a failed run or a conflict: each attempt reads all files."""


def is_due(request: Request, now: datetime) -> bool:
    """Return whether a request can be continued automatically: it was interrupted, or retained
    files are due. An exception waits for an operator.
    """
    if request.state == "pending_physical":
        return request.physical_due_at is None or request.physical_due_at <= now
    return request.state in ("requested", "logically_deleted")


def failed_run(instance: dg.DagsterInstance, request: Request) -> dg.RunRecord | None:
    """Return the last finished run of a request, if it failed and the request did not change
    since.
    """
    tags = {REQUEST_TAG: request.request_id}
    filters = dg.RunsFilter(job_name=JOB, tags=tags, statuses=FINISHED)
    since = request.changed_at or request.requested_at
    for record in instance.get_run_records(filters, limit=1):
        is_success = record.dagster_run.status is dg.DagsterRunStatus.SUCCESS
        if not is_success and finished_at(record) >= since:
            return record
    return None


def finished_at(record: dg.RunRecord) -> datetime:
    """Return when a run finished."""
    if record.end_time:
        return datetime.fromtimestamp(record.end_time, UTC)
    return record.update_timestamp.replace(tzinfo=UTC)
