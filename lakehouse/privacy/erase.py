"""A person is erased from everything that the lakehouse holds, by request; and it is proved.

Each step looks at what is there, and does what is left to do: a call after one that was killed
goes through all of them again, and ends in the same state. Who is gone is known first, so that
what lands meanwhile is left out.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from lakehouse.errors import LakehouseError, UsageError
from lakehouse.privacy.audit_chain import AuditedAction
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.erase_now import refuse_now
from lakehouse.privacy.erasure import Erasure, How
from lakehouse.privacy.erasure_record import read_record
from lakehouse.privacy.folder import check_request_id, erase_lock, privacy_folder
from lakehouse.privacy.identity import Identity, Named, find_people
from lakehouse.privacy.requests import open_request, read_request, read_requests
from lakehouse.privacy.steps.identify import identify, mark_gone, note_request
from lakehouse.privacy.steps.prove import conclude, remove_physically, verify_all
from lakehouse.privacy.steps.take_away import (
    close_logically,
    erase_files,
    erase_rows,
    recompute_sums,
    scrub,
)
from lakehouse.storage.file_lock import file_lock

Progress = Callable[[str], AbstractContextManager[object]]
_LOCK_SECONDS = 1.0
"""How long is waited for a sensor that looks whether anybody erases."""
STEPS: Sequence[tuple[str, Callable[[Erasure], None]]] = (
    ("Recording the request", note_request),
    ("Looking for the people", identify),
    ("Noting who is gone", mark_gone),
    ("Rewriting delivered files", erase_files),
    ("Deleting rows", erase_rows),
    ("Computing sums anew", recompute_sums),
    ("Overwriting values elsewhere", scrub),
    ("Recording the request", close_logically),
    ("Removing files", remove_physically),
    ("Searching every byte", verify_all),
    ("Recording the request", conclude),
)
"""What is done, in order, each with what a person is told meanwhile."""


def erase(
    erasable: Erasable,
    request_id: str,
    named: Sequence[Named],
    how: How,
    *,
    progress: Progress = lambda _: nullcontext(),
) -> Erasure:
    """Erase people by a request, or carry on the one that there is; return how far it is.

    :param named: who is to be erased; nobody where a request that is there is carried on.
    :raises UsageError: when the request names others, or nobody knows whom it is about.
    :raises TableBusy: when a table is being written that has to be free.
    """
    check_request_id(request_id)
    if how.now:
        refuse_now(erasable)
    privacy_folder(erasable.settings)
    lock = erase_lock(erasable.settings)
    with file_lock(lock, _LOCK_SECONDS, _is_erased(request_id)):
        erasure = _begin(erasable, request_id, named, how, progress)
        for said, step in STEPS:
            if erasure.is_over:
                break
            with progress(said):
                step(erasure)
    return erasure


def _is_erased(request_id: str) -> LakehouseError:
    return LakehouseError(
        f"Another process erases people from this home; expected one at a time for {request_id}.",
        next_step="Try again when it has ended; each goes on from where it was.",
    )


def _begin(
    erasable: Erasable,
    request_id: str,
    named: Sequence[Named],
    how: How,
    progress: Progress,
) -> Erasure:
    # What cannot be audited is refused before anything is opened.
    AuditedAction("requested", request_id, how.by)
    settings = erasable.settings
    is_known = any(one.request_id == request_id for one in read_requests(settings))
    found: list[Identity] = []
    if named and not is_known:
        with progress("Looking for the people"):
            # Whoever cannot be told from others opens no request.
            found = find_people(erasable.engine, erasable.subjects, named)
    if named:
        request = open_request(settings, request_id, named, why=how.why, by=how.by)
    else:
        request = read_request(settings, request_id)
    record = read_record(settings, request_id)
    return Erasure(erasable, request, how, record, found=tuple(found))


def require_named(named: Sequence[Named], is_dry: bool) -> None:
    """Refuse a dry run of nobody.

    :raises UsageError: when nobody is named.
    """
    if is_dry and not named:
        raise UsageError(
            "Nobody is named; a dry run needs SUBJECT=VALUE, such as customer_id=123, since it"
            " opens no sealed values."
        )
