"""A person is erased from everything that the lakehouse holds, by request; and it is proved.

Each step looks at what is there, and does what is left to do: a call after one that was killed
goes through all of them again, and ends in the same state. Who is gone is known first, so that
what lands meanwhile is left out.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from lakehouse.errors import LakehouseError, UsageError
from lakehouse.iceberg.erasure.delete_rows import DeletedRows, delete_rows
from lakehouse.iceberg.erasure.remove_from_files import remove_from_files, remove_now
from lakehouse.iceberg.metadata.history import MAIN
from lakehouse.iceberg.upkeep.step_result import StepResult
from lakehouse.privacy.audit_chain import Action, AuditedAction, append_actions
from lakehouse.privacy.compute_anew import compute_anew
from lakehouse.privacy.delivered_files import FilesRewritten, find_in_files, rewrite_files
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.erase_now import refuse_now
from lakehouse.privacy.erased_people import by_all_names, people_in, shared_values
from lakehouse.privacy.erasure_record import (
    ErasedFile,
    ErasureRecord,
    UnreadableFile,
    is_elsewhere,
    read_record,
    write_record,
)
from lakehouse.privacy.folder import check_request_id, erase_lock, privacy_folder
from lakehouse.privacy.gone import GonePerson, add_gone
from lakehouse.privacy.hmac_key import hmac_key
from lakehouse.privacy.identity import Identity, Named, find_people
from lakehouse.privacy.places.scrub import scrub_places
from lakehouse.privacy.places.scrubbed_place import ScrubbedPlace
from lakehouse.privacy.proof import prove
from lakehouse.privacy.requests import change_request, open_request, read_request, read_requests
from lakehouse.privacy.sealed_values import SealedValues, destroy, is_sealed, seal, unseal
from lakehouse.privacy.states import Request, RequestState, Unreachable, plan_transition
from lakehouse.privacy.sums import find_sums
from lakehouse.privacy.verifier.report import Report
from lakehouse.storage.file_lock import file_lock
from lakehouse.tables.person import Person, person_hmac

Progress = Callable[[str], AbstractContextManager[object]]
_TRIED_AGAIN_AFTER = timedelta(hours=1)
"""When what gave way to a writer is tried again."""
_LOCK_SECONDS = 1.0
"""How long is waited for a sensor that looks whether anybody erases."""


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


def note_request(erasure: Erasure) -> None:
    """Say in the audit table that the request was made; one that is done needs no more."""
    request = erasure.request
    actions = []
    for person in request.people:
        actions.append(
            AuditedAction(
                "requested",
                request.request_id,
                erasure.how.by,
                subject=person.column,
                person=person.hmac,
            )
        )
    erasure.audit_all("requested", actions)
    _note_elsewhere(erasure)
    if request.is_final:
        _conclude(erasure)


def _note_elsewhere(erasure: Erasure) -> None:
    """Keep which places somebody saw to, for the call that ends the request."""
    if erasure.how.is_elsewhere_done:
        seen_to = tuple(place.place for place in erasure.record.elsewhere)
        erasure.keep(replace(erasure.record, seen_to=seen_to))


def identify(erasure: Erasure) -> None:
    """Find out who is meant, once: what leads to them goes with the first rows."""
    settings, request_id = erasure.erasable.settings, erasure.request.request_id
    sealed = unseal(settings, request_id)
    if not sealed.people:
        named = [Named(column, value) for column, value in sealed.named]
        sealed = _found_people(erasure, named)
        seal(settings, request_id, sealed)
    if sealed.people:
        erasure.persons = sealed.people
        return
    erasure.move("not_found")
    _conclude(erasure)


def _found_people(erasure: Erasure, named: Sequence[Named]) -> SealedValues:
    erasable, persons, unknown = erasure.erasable, [], []
    found = erasure.found or find_people(erasable.engine, erasable.subjects, named)
    for identity in found:
        if identity.is_known or is_delivered(erasable, identity):
            persons.append(identity.person)
        else:
            unknown.append(identity)
    if unknown:
        erasure.audit_all("not_found", list(_not_found(erasure, unknown)))
        erasure.keep(replace(erasure.record, unknown=len(unknown)))
    return SealedValues(tuple((one.column, one.value) for one in named), tuple(persons))


def _not_found(erasure: Erasure, unknown: Sequence[Identity]) -> Iterator[AuditedAction]:
    key = hmac_key(erasure.erasable.settings)
    for identity in unknown:
        subject = identity.person.subject.lower()
        digest = person_hmac(key, subject, identity.normal_id)
        yield AuditedAction(
            "not_found",
            erasure.request.request_id,
            erasure.how.by,
            subject=subject,
            person=digest,
        )


def is_delivered(erasable: Erasable, identity: Identity) -> bool:
    """Whether a delivered file has rows of somebody whom no table has."""
    for feed, holder, persons in erasable.feeds_of([identity.person]):
        people = people_in(holder, persons, frozenset())
        if find_in_files(erasable.store, feed, people, home=erasable.settings.home):
            return True
    return False


def mark_gone(erasure: Erasure) -> None:
    """Put the people on the list of who is gone, before anything of them goes."""
    key = hmac_key(erasure.erasable.settings)
    erased_at = erasure.record.erased_at or datetime.now(UTC)
    gone, hmacs = [], []
    for person in erasure.persons:
        subject = erasure.erasable.subject_of(person)
        names = {person.subject.lower(), subject.name}
        is_by_id = person.subject.lower() in subject.names
        for value in sorted(person.ids):
            hmacs += [person_hmac(key, name, value) for name in sorted(names)]
            for name in sorted(subject.names if is_by_id else {person.subject.lower()}):
                gone.append(GonePerson(name, person_hmac(key, name, value), erased_at))
    erasure.keep(
        replace(erasure.record, erased_at=erased_at, hmacs=tuple(dict.fromkeys(hmacs)))
    )
    add_gone(erasure.erasable.settings, gone)
    erasure.shared = shared_values(erasure.erasable, erasure.persons)


def erase_files(erasure: Erasure) -> None:
    """Write delivered files again without the rows of the people."""
    erasable = erasure.erasable
    for feed, holder, persons in erasable.feeds_of(erasure.persons):
        rewritten = rewrite_files(
            erasable.store,
            feed,
            people_in(holder, persons, erasure.shared),
            erasure.request.request_id,
            home=erasable.settings.home,
            erase_whole=erasure.how.erase_whole,
        )
        erasure.keep(_with_files(erasure.record, rewritten))
    record = erasure.record
    if record.files:
        rows = sum(file.rows for file in record.files)
        digests = [hash_ for file in record.files for hash_ in (file.sha256, file.new_sha256)]
        erasure.audit(
            "files_rewritten",
            occasion=f"files_rewritten:{_digest(sorted(digests))}",
            counts={"files": len(record.files), "rows": rows},
            files=sorted(set(digests)),
        )


def _digest(texts: Sequence[str]) -> str:
    """Return what stands for some texts: the same occasion is the same whoever comes to it."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _with_files(record: ErasureRecord, rewritten: FilesRewritten) -> ErasureRecord:
    files = dict.fromkeys(record.files)
    for file in rewritten.files:
        files[ErasedFile(file.key, file.sha256, file.new_sha256, len(file.rows))] = None
    unreadable = [UnreadableFile(one.key, one.why) for one in rewritten.unreadable]
    known = {(file.key, file.sha256): file for file in files}
    return replace(
        record,
        files=tuple(sorted(known.values(), key=lambda file: (file.key, file.sha256))),
        unreadable=tuple(dict.fromkeys(unreadable)),
    )


def erase_rows(erasure: Erasure) -> None:
    """Delete the rows of the people from all branches and tags, sources first."""
    erasable = erasure.erasable
    erasure.keep(replace(erasure.record, waiting=()))
    for holder, persons in erasable.holders(erasure.persons):
        people = people_in(holder, persons, erasure.shared)
        table = erasable.tables[holder.table]
        deleted = delete_rows(erasable.engine, table, people, erasure.request.request_id)
        erasure.keep(_with_rows(erasure.record, deleted))
    erasure.gone_at = datetime.now(UTC)
    record = erasure.record
    if record.row_count:
        counts = {f"{table}.rows": sum(rows.values()) for table, rows in record.rows.items()}
        erasure.audit(
            "rows_erased",
            occasion=f"rows_erased:{record.row_count}",
            counts=counts,
            snapshots=record.snapshots,
        )


def _with_rows(record: ErasureRecord, deleted: DeletedRows) -> ErasureRecord:
    """Add what went from a table. A call that was killed may have told nobody what it deleted:
    the commits do, as long as they are kept.
    """
    by_ref = dict(record.rows.get(deleted.table, {}))
    for ref, rows in deleted.rows.items():
        by_ref[ref] = by_ref.get(ref, 0) + rows
    of_request: dict[str, int] = {}
    snapshots, main_snapshots = dict(record.snapshots), dict(record.main_snapshots)
    for erased in deleted.of_request:
        of_request[erased.ref] = of_request.get(erased.ref, 0) + erased.rows
        snapshots[deleted.table] = erased.snapshot_id
        if erased.ref == MAIN:
            main_snapshots[deleted.table] = erased.snapshot_id
    for ref, rows in of_request.items():
        by_ref[ref] = max(by_ref.get(ref, 0), rows)
    waiting = [f"{deleted.table}: branch {ref}: {why}" for ref, why in deleted.skipped.items()]
    tags = dict.fromkeys(record.tags.get(deleted.table, ()))
    tags |= dict.fromkeys((*deleted.moved_tags, *deleted.dropped))
    has_lost = main_snapshots != record.main_snapshots
    return replace(
        record,
        # What came since may have reached those places too.
        seen_to=() if has_lost else record.seen_to,
        rows={**record.rows, deleted.table: by_ref} if by_ref else record.rows,
        snapshots=snapshots,
        tags={**record.tags, deleted.table: tuple(tags)} if tags else record.tags,
        main_snapshots=main_snapshots,
        anew=() if has_lost else record.anew,
        is_recomputed=record.is_recomputed and not has_lost,
        waiting=(*record.waiting, *waiting),
    )


def recompute_sums(erasure: Erasure) -> None:
    """Compute anew what has the people in its sums; each table that is done is kept, so that the
    next call goes on after it.
    """
    record, erasable = erasure.record, erasure.erasable
    if record.is_recomputed:
        return
    lost = {table: rows[MAIN] for table, rows in record.rows.items() if rows.get(MAIN)}
    sums = find_sums(erasable, erasure.persons, lost, erasure.shared)

    def keep(table: str, is_computed: bool) -> None:
        record = erasure.record
        computed = (table,) if is_computed else ()
        erasure.keep(
            replace(
                record,
                recomputed=tuple(dict.fromkeys((*record.recomputed, *computed))),
                anew=(*record.anew, table),
            )
        )

    request_id = erasure.request.request_id
    compute_anew(erasable, request_id, sums, lost, done=record.anew, told=keep)
    kept = sums.kept or record.kept
    erasure.keep(replace(erasure.record, kept=kept, is_recomputed=True))


def scrub(erasure: Erasure) -> None:
    """Overwrite the people's values everywhere else below the home."""
    erasable = erasure.erasable
    scrubbed = scrub_places(
        erasable.settings,
        by_all_names(erasable, erasure.persons),
        erasure.shared,
        gone_at=erasure.gone_at,
    )
    places = _with_places(erasure.record.places, scrubbed)
    erasure.keep(replace(erasure.record, places=places))
    _note_elsewhere(erasure)


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


def close_logically(erasure: Erasure) -> None:
    """Say that no reader sees the people any more."""
    if erasure.request.state == "requested":
        values = sum(place.values for place in erasure.record.places)
        counts = {"places": len(erasure.record.places), "values": values}
        erasure.audit("places_erased", counts=counts)
        erasure.audit("logically_deleted", counts={"rows": erasure.record.row_count})
        erasure.move("logically_deleted")


def remove_physically(erasure: Erasure) -> None:
    """Remove what Iceberg keeps of the rows, as far as it may go by now."""
    erasable, request_id = erasure.erasable, erasure.request.request_id
    tables = erasable.tables_of(erasure.persons)
    results: list[StepResult] = []
    if erasure.how.now:
        results += remove_now(erasable.engine, tables, request_id, erasable.dependents)
    else:
        for table in tables:
            results += remove_from_files(
                erasable.engine,
                table,
                request_id,
                now=False,
                readers=erasable.readers.get(table.name, ()),
                dependents=erasable.dependents.get(table.name, ()),
            )
    left = [result for result in results if _is_left(result)]
    waiting = (*erasure.record.waiting, *map(_left_text, left))
    erasure.keep(replace(erasure.record, waiting=tuple(dict.fromkeys(waiting))))
    if not waiting:
        erasure.audit("physically_deleted")
        return
    due_at = max((_due_at(result) for result in left), default=None)
    erasure.audit("pending_physical")
    # What waits stays an exception as long as it is one.
    later = datetime.now(UTC) + _TRIED_AGAIN_AFTER
    erasure.move("pending_physical", physical_due_at=due_at or later)
    erasure.is_over = True


def _is_left(result: StepResult) -> bool:
    return result.outcome in ("partial", "failed") or result.lost_race


def _left_text(result: StepResult) -> str:
    # What others raised may quote data.
    reason = result.error or result.reason
    return f"{result.table}: {result.step}: {reason}"


def _due_at(result: StepResult) -> datetime:
    due_at = result.figures.get("due_at")
    if due_at is None:
        return datetime.now(UTC) + _TRIED_AGAIN_AFTER
    return datetime.fromtimestamp(due_at, UTC)


def verify_all(erasure: Erasure) -> None:
    """Prove that the people are gone; without a proof the request stays as it is."""
    erasure.proof = prove(erasure.erasable, erasure.persons)
    erasure.is_over = erasure.failed_proof is not None


def conclude(erasure: Erasure) -> None:
    """Bring a proven request to its end, unless somebody else has to see to a place."""
    if erasure.record.unattended:
        until = erasure.request.due_at.date()
        unreachable = []
        for place in erasure.record.unattended:
            owner = place.owner or "the operator of this home"
            unreachable.append(Unreachable(place.place, owner, until))
        erasure.audit("exception", counts={"places": len(unreachable)})
        erasure.move("exception", unreachable=unreachable)
        return
    assert erasure.proof is not None
    counts = {"files": erasure.proof.files, "bytes": erasure.proof.size_bytes}
    erasure.audit("verified", counts={**counts, "shared": len(erasure.proof.shared)})
    erasure.move("verified")
    _conclude(erasure)


def _conclude(erasure: Erasure) -> None:
    """Destroy the values of a request that is done."""
    settings, request_id = erasure.erasable.settings, erasure.request.request_id
    if is_sealed(settings, request_id):
        erasure.audit("values_destroyed")
    destroy(settings, request_id)
    erasure.is_over = True


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


def require_named(named: Sequence[Named], is_dry: bool) -> None:
    """Refuse a dry run of nobody.

    :raises UsageError: when nobody is named.
    """
    if is_dry and not named:
        raise UsageError(
            "Nobody is named; a dry run needs SUBJECT=VALUE, such as customer_id=123, since it"
            " opens no sealed values."
        )
