"""Erases people from everything that the lakehouse contains, by request, and proves it.

Each step reads the current state and does what remains: a call after a killed one repeats all
steps, and has the same result. The suppression list is written first, so that rows that land
meanwhile are excluded.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from dagster import DagsterRun, DagsterRunStatus, RunsFilter

from lakehouse.errors import LakehouseError, TableBusy, UsageError
from lakehouse.iceberg.commit.branch import drop_abandoned_branches
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.erasure.delete_rows import count_rows
from lakehouse.iceberg.erasure.remove_unnamed import WAIT_SECONDS, require_not_written
from lakehouse.iceberg.metadata.snapshots import MAIN
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.orphaned_runs import fail_orphaned_runs
from lakehouse.orchestration.runs.run_in_process import UNFINISHED
from lakehouse.privacy.audit_chain import AuditedAction
from lakehouse.privacy.delivered_files import find_in_files
from lakehouse.privacy.erasable import Erasable, people_in
from lakehouse.privacy.erasure import Erasure, How
from lakehouse.privacy.erasure_record import read_record
from lakehouse.privacy.erasure_search import unread_tables
from lakehouse.privacy.erasure_steps import (
    close_logically,
    conclude,
    erase_files,
    erase_rows,
    identify,
    is_delivered,
    note_request,
    recompute_sums,
    remove_physically,
    scrub,
    suppress_people,
    verify_all,
)
from lakehouse.privacy.folder import check_request_id, erase_lock, privacy_folder
from lakehouse.privacy.identity import Identity, Named, find_people
from lakehouse.privacy.places.mask_files import scrub_places
from lakehouse.privacy.places.scrubbed_place import ScrubbedPlace
from lakehouse.privacy.recompute import find_sums
from lakehouse.privacy.requests import open_request, read_request, read_requests
from lakehouse.privacy.table_values import shared_values
from lakehouse.settings import Settings
from lakehouse.storage.file_lock import file_lock
from lakehouse.tables.person import Person

Progress = Callable[[str], AbstractContextManager[object]]
_LOCK_SECONDS = 1.0
"""Wait for a sensor that checks the lock."""
STEPS: Sequence[tuple[str, Callable[[Erasure], None]]] = (
    ("Recording the request", note_request),
    ("Looking for the people", identify),
    ("Adding them to the suppression list", suppress_people),
    ("Rewriting delivered files", erase_files),
    ("Deleting rows", erase_rows),
    ("Recomputing sums", recompute_sums),
    ("Erasing values in other places", scrub),
    ("Recording the request", close_logically),
    ("Removing files", remove_physically),
    ("Searching every byte", verify_all),
    ("Recording the request", conclude),
)
"""The workflow, each step with its progress message."""


def erase(
    erasable: Erasable,
    request_id: str,
    named: Sequence[Named],
    how: How,
    *,
    progress: Progress = lambda _: nullcontext(),
) -> Erasure:
    """Erase people by a request, or continue an existing one; return its state.

    :param named: the people to erase; empty to continue a request.
    :raises UsageError: if the request names other people, or they cannot be identified.
    :raises TableBusy: if a table is being written that must not be.
    """
    check_request_id(request_id)
    if how.now:
        require_no_writers(erasable)
    privacy_folder(erasable.settings)
    is_locked = LakehouseError(
        f"Another process erases people from this home; expected one at a time for {request_id}.",
        next_step="Try again when it has finished; each continues from its state.",
    )
    with file_lock(erase_lock(erasable.settings), _LOCK_SECONDS, is_locked):
        erasure = _open(erasable, request_id, named, how, progress)
        for title, step in STEPS:
            if erasure.is_stopped:
                break
            with progress(title):
                step(erasure)
    return erasure


def _open(
    erasable: Erasable,
    request_id: str,
    named: Sequence[Named],
    how: How,
    progress: Progress,
) -> Erasure:
    # An invalid caller is rejected before anything is written.
    AuditedAction("requested", request_id, how.by)
    settings = erasable.settings
    is_known = any(one.request_id == request_id for one in read_requests(settings))
    found: list[Identity] = []
    if named and not is_known:
        with progress("Looking for the people"):
            # People who cannot be identified open no request.
            found = find_people(erasable.engine, erasable.subjects, named)
    if named:
        request = open_request(settings, request_id, named, why=how.why, by=how.by)
    else:
        request = read_request(settings, request_id)
    record = read_record(settings, request_id)
    return Erasure(erasable, request, how, record, found=tuple(found))


def require_no_writers(erasable: Erasable) -> None:
    """Check that nothing is being written.

    :raises TableBusy: names the run, or the table and the branch.
    """
    alive = alive_runs(erasable.settings)
    if alive:
        raise TableBusy(
            f"{len(alive)} runs of this home are alive, such as {alive[0].run_id} of"
            f" {alive[0].job_name}; expected none when files are removed at once.",
            next_step="Wait for their end, or omit --now.",
        )
    names = {holder.table for subject in erasable.subjects for holder in subject.holders}
    for name in sorted(filter(erasable.engine.catalog.has, names)):
        # A branch of a crashed run is no active write.
        with table_lock(erasable.engine, name, WAIT_SECONDS) as log:
            drop_abandoned_branches(erasable.engine, name, log)
        require_not_written(erasable.engine, name)


def alive_runs(settings: Settings) -> list[DagsterRun]:
    """Return the queued and running runs of a home."""
    if not (settings.dagster_home / "dagster.yaml").is_file():
        return []
    statuses = [*UNFINISHED, DagsterRunStatus.NOT_STARTED]
    with open_instance(settings) as instance:
        fail_orphaned_runs(instance)
        records = instance.get_run_records(RunsFilter(statuses=statuses))
    return [record.dagster_run for record in records]


@dataclass(frozen=True)
class WouldGo:
    """What an erasure would change."""

    unknown: int = 0
    """How many of the named people are not found."""
    rows: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By table, and by branch or tag."""
    files: Mapping[str, int] = field(default_factory=dict)
    """Rows by delivered file; 0 if they cannot be counted."""
    sums: tuple[str, ...] = ()
    """Tables that would be recomputed."""
    kept: tuple[str, ...] = ()
    """Tables that would keep their sums, as declared."""
    places: tuple[ScrubbedPlace, ...] = ()


def dry_run(erasable: Erasable, named: Sequence[Named]) -> WouldGo:
    """Return what an erasure of some people would change.

    :raises UsageError: if no one is named.
    """
    if not named:
        raise UsageError(
            "No one is named; a dry run needs SUBJECT=VALUE, such as customer_id=123, since it"
            " opens no sealed values."
        )
    identities = find_people(erasable.engine, erasable.subjects, named)
    persons = [
        identity.person
        for identity in identities
        if identity.is_known or is_delivered(erasable, identity)
    ]
    unknown = len(identities) - len(persons)
    unread = tuple(unread_tables(erasable))
    if not persons:
        return WouldGo(unknown, places=unread)
    shared = shared_values(erasable.engine, erasable.subjects, persons)
    rows = _rows(erasable, persons, shared)
    sums = find_sums(
        erasable, persons, [table for table in rows if rows[table].get(MAIN)], shared
    )
    by_name = erasable.by_all_names(persons)
    places = scrub_places(erasable.settings, by_name, shared, is_dry=True)
    files = _files(erasable, persons, shared)
    return WouldGo(unknown, rows, files, sums.names, sums.kept, (*places, *unread))


def _rows(
    erasable: Erasable, persons: Sequence[Person], shared: frozenset[str]
) -> dict[str, dict[str, int]]:
    rows: dict[str, Counter[str]] = {}
    # A table can contain people in several ways, such as the winner and the loser of a match.
    for holder, in_table in erasable.holders(persons):
        people = people_in(holder, in_table, shared)
        counts = count_rows(erasable.engine, erasable.tables[holder.table], people)
        if counts:
            rows.setdefault(holder.table, Counter()).update(counts)
    return {table: dict(counts) for table, counts in rows.items()}


def _files(
    erasable: Erasable, persons: Sequence[Person], shared: frozenset[str]
) -> dict[str, int]:
    files: Counter[str] = Counter()
    for feed, holder, in_table in erasable.feeds_of(persons):
        people = people_in(holder, in_table, shared)
        files.update(find_in_files(erasable.store, feed, people, home=erasable.settings.home))
    return dict(files)
