"""The ledger of requests: a file for each, which says how far it is, and no value."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

from lakehouse.errors import UsageError
from lakehouse.privacy.folder import check_request_id, requests_folder
from lakehouse.privacy.hmac_key import hmac_key
from lakehouse.privacy.identity import Named
from lakehouse.privacy.sealed_values import SealedValues, seal
from lakehouse.privacy.states import Request, RequestedPerson, a_month_after
from lakehouse.settings import Settings
from lakehouse.storage.file_lock import brief_lock
from lakehouse.storage.json_files import read_json, write_json
from lakehouse.tables.person import is_distinctive, person_hmac


def open_request(
    settings: Settings,
    request_id: str,
    named: Sequence[Named],
    *,
    why: str,
    by: str,
    now: datetime | None = None,
) -> Request:
    """Return the request of an id, made where there is none; its values are sealed.

    :raises UsageError: when there is one of this id that names others, or when its id or why
        holds a value. No value stands in it.
    """
    check_request_id(request_id)
    _check_texts(request_id, why, named)
    people = _hashed(settings, named)
    with _lock(settings):
        if _file(settings, request_id).is_file():
            known = _read(_file(settings, request_id))
            if known.people != people:
                raise UsageError(
                    f"Request {request_id} names others; expected the same people under the same"
                    " columns.",
                    next_step="Give this request another id.",
                )
            return known
        requested_at = now or datetime.now(UTC)
        request = Request(
            request_id, people, why, by, requested_at, a_month_after(requested_at)
        )
        # First the values: a request that is known has them.
        seal(settings, request_id, SealedValues(_pairs(named)))
        _write(settings, request)
        return request


def read_request(settings: Settings, request_id: str) -> Request:
    """Return a request by its id.

    :raises UsageError: when there is none.
    """
    check_request_id(request_id)
    file = _file(settings, request_id)
    if not file.is_file():
        raise UsageError(
            f"There is no request {request_id}.",
            next_step="`lakehouse erasures` lists them.",
        )
    return _read(file)


def read_requests(settings: Settings) -> list[Request]:
    """Return all requests, the oldest first."""
    folder = _folder(settings)
    files = folder.glob("*.json") if folder.is_dir() else ()
    # What macOS keeps beside a file of some disks is none.
    requests = [_read(file) for file in files if not file.name.startswith("._")]
    return sorted(requests, key=lambda request: (request.requested_at, request.request_id))


def change_request(
    settings: Settings, request_id: str, change: Callable[[Request], Request]
) -> Request:
    """Change a request, one process after the other; return it as it is then.

    :param change: returns it as it is to be, such as by `plan_transition`.
    """
    with _lock(settings):
        request = read_request(settings, request_id)
        changed = change(request)
        if changed != request:
            _write(settings, changed)
        return changed


def _check_texts(request_id: str, why: str, named: Iterable[Named]) -> None:
    """Refuse texts that stay, and hold a value that is to go."""
    for text, what in ((request_id, "The id of the request"), (why, "Why it was made")):
        for one in named:
            value = one.value.strip()
            if text == value or (is_distinctive(value) and value.casefold() in text.casefold()):
                raise UsageError(
                    f"{what} holds the {one.column} that is to be erased, and stays; expected a"
                    " text without it."
                )


def _hashed(settings: Settings, named: Iterable[Named]) -> tuple[RequestedPerson, ...]:
    key = hmac_key(settings)
    people = set()
    for one in named:
        column = one.column.lower()
        people.add((column, person_hmac(key, column, one.value)))
    return tuple(RequestedPerson(column, digest) for column, digest in sorted(people))


def _pairs(named: Iterable[Named]) -> tuple[tuple[str, str], ...]:
    return tuple((one.column, one.value) for one in named)


def _folder(settings: Settings) -> Path:
    return settings.home / "privacy" / "requests"


def _file(settings: Settings, request_id: str) -> Path:
    return requests_folder(settings) / f"{request_id}.json"


def _lock(settings: Settings) -> AbstractContextManager[None]:
    return brief_lock(requests_folder(settings) / ".lock")


def _read(file: Path) -> Request:
    request: Request = read_json(file, Request)
    return request


def _write(settings: Settings, request: Request) -> None:
    write_json(_file(settings, request.request_id), request, Request, indent=1)
