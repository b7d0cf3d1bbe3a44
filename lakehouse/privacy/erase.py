"""A person is erased from everything that the lakehouse holds, by request; and it is proved.

Each step looks at what is there, and does what is left to do: a call after one that was killed
goes through all of them again, and ends in the same state. Who is gone is known first, so that
what lands meanwhile is left out.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakehouse.errors import LakehouseError, TableBusy, UsageError
from lakehouse.iceberg.commit.branch import drop_abandoned_branches
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.erasure.delete_rows import count_rows
from lakehouse.iceberg.erasure.remove_unnamed import WAIT_SECONDS, refuse_where_written
from lakehouse.iceberg.metadata.history import MAIN
from lakehouse.orchestration.instance import open_instance
from lakehouse.orchestration.orphaned_runs import fail_orphaned_runs
from lakehouse.privacy.audit_chain import AuditedAction
from lakehouse.privacy.delivered_files import find_in_files
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.erased_people import by_all_names, people_in, shared_values
from lakehouse.privacy.erasure import Erasure, How
from lakehouse.privacy.erasure_record import read_record
from lakehouse.privacy.folder import check_request_id, erase_lock, privacy_folder
from lakehouse.privacy.identity import Identity, Named, find_people
from lakehouse.privacy.places.scrub import scrub_places
from lakehouse.privacy.places.scrubbed_place import ScrubbedPlace
from lakehouse.privacy.requests import open_request, read_request, read_requests
from lakehouse.privacy.steps.identify import identify, is_delivered, mark_gone, note_request
from lakehouse.privacy.steps.prove import conclude, remove_physically, verify_all
from lakehouse.privacy.steps.take_away import (
    close_logically,
    erase_files,
    erase_rows,
    recompute_sums,
    scrub,
)
from lakehouse.privacy.sums import find_sums
from lakehouse.privacy.unread_tables import unread_tables
from lakehouse.settings import Settings
from lakehouse.storage.file_lock import file_lock
from lakehouse.tables.person import Person

if TYPE_CHECKING:
    from dagster import DagsterRun

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


def refuse_now(erasable: Erasable) -> None:
    """Refuse to erase at once where anything is being written.

    :raises TableBusy: names the run, or the table and the branch.
    """
    alive = alive_runs(erasable.settings)
    if alive:
        raise TableBusy(
            f"{len(alive)} runs of this home are alive, such as {alive[0].run_id} of"
            f" {alive[0].job_name}; expected none where files are removed at once.",
            next_step="Wait for their end, or leave out --now.",
        )
    for name in _tables(erasable):
        # A branch of a crashed run is no write under way.
        with table_lock(erasable.engine, name, WAIT_SECONDS) as log:
            drop_abandoned_branches(erasable.engine, name, log)
        refuse_where_written(erasable.engine, name)


def alive_runs(settings: Settings) -> "list[DagsterRun]":
    """Return the runs of a home that go on, or wait for their turn; none of a home without any."""
    if not (settings.dagster_home / "dagster.yaml").is_file():
        return []
    from dagster import DagsterRunStatus, RunsFilter

    status = DagsterRunStatus
    working = [
        status.QUEUED,
        status.NOT_STARTED,
        status.STARTING,
        status.STARTED,
        status.CANCELING,
    ]
    with open_instance(settings) as instance:
        fail_orphaned_runs(instance)
        records = instance.get_run_records(RunsFilter(statuses=working))
    return [record.dagster_run for record in records]


def _tables(erasable: Erasable) -> list[str]:
    names = {holder.table for subject in erasable.subjects for holder in subject.holders}
    return sorted(name for name in names if erasable.engine.catalog.has(name))


@dataclass(frozen=True)
class WouldGo:
    """What an erasure would take."""

    unknown: int = 0
    """How many of those who were named nothing holds."""
    rows: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By table, and by branch or tag."""
    files: Mapping[str, int] = field(default_factory=dict)
    """Rows by delivered file; 0 where nobody can say."""
    sums: tuple[str, ...] = ()
    """Tables that would be computed anew."""
    kept: tuple[str, ...] = ()
    """Tables that would keep their sums, as declared."""
    places: tuple[ScrubbedPlace, ...] = ()


def dry_run(erasable: Erasable, named: Sequence[Named]) -> WouldGo:
    """Return what an erasure of some people would take."""
    persons: list[Person] = []
    unknown = 0
    for identity in find_people(erasable.engine, erasable.subjects, named):
        if identity.is_known or is_delivered(erasable, identity):
            persons.append(identity.person)
        else:
            unknown += 1
    if not persons:
        return WouldGo(unknown, places=tuple(unread_tables(erasable)))
    shared = shared_values(erasable, persons)
    rows = _rows(erasable, persons, shared)
    lost = [table for table in rows if rows[table].get(MAIN)]
    sums = find_sums(erasable, persons, lost, shared)
    return WouldGo(
        unknown,
        rows,
        _files(erasable, persons, shared),
        sums.names,
        sums.kept,
        (
            *scrub_places(
                erasable.settings, by_all_names(erasable, persons), shared, is_dry=True
            ),
            *unread_tables(erasable),
        ),
    )


def _rows(
    erasable: Erasable, persons: Sequence[Person], shared: frozenset[str]
) -> dict[str, dict[str, int]]:
    rows: dict[str, Counter[str]] = {}
    # A table may hold people in several ways, such as the winner and the loser of a match.
    for holder, theirs in erasable.holders(persons):
        people = people_in(holder, theirs, shared)
        counts = count_rows(erasable.engine, erasable.tables[holder.table], people)
        if counts:
            rows.setdefault(holder.table, Counter()).update(counts)
    return {table: dict(counts) for table, counts in rows.items()}


def _files(
    erasable: Erasable, persons: Sequence[Person], shared: frozenset[str]
) -> dict[str, int]:
    files: Counter[str] = Counter()
    for feed, holder, theirs in erasable.feeds_of(persons):
        people = people_in(holder, theirs, shared)
        files.update(find_in_files(erasable.store, feed, people, home=erasable.settings.home))
    return dict(files)
