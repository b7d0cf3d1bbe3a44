"""The steps of an erasure. Each reads the current state and does what remains."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

from lakehouse.iceberg.erasure.delete_rows import DeletedRows, delete_rows
from lakehouse.iceberg.erasure.remove_from_files import remove_from_files
from lakehouse.iceberg.erasure.remove_unnamed import named_by_any
from lakehouse.iceberg.metadata.snapshots import MAIN
from lakehouse.iceberg.metadata.table_locations import folder_key, is_in_a_bucket
from lakehouse.iceberg.upkeep.remove_orphans import YOUNGEST
from lakehouse.iceberg.upkeep.step_result import StepResult
from lakehouse.privacy.delivered_files import (
    FilesRewritten,
    PersonText,
    find_in_files,
    rewrite_files,
)
from lakehouse.privacy.erasable import Erasable, people_in
from lakehouse.privacy.erasure import Erasure
from lakehouse.privacy.erasure_record import ErasureRecord
from lakehouse.privacy.erasure_search import (
    Folders,
    folders_of_holders,
    search_persons,
    unread_tables,
)
from lakehouse.privacy.folder import hmac_key
from lakehouse.privacy.holders import subject_of
from lakehouse.privacy.identity import Identity, Named, find_people
from lakehouse.privacy.places.left_folders import wait_for_spark
from lakehouse.privacy.places.mask_files import scrub_places
from lakehouse.privacy.places.scrubbed_place import ScrubbedPlace
from lakehouse.privacy.recompute import find_sums, recompute_tables
from lakehouse.privacy.requests import RETRY_AFTER, Unreachable
from lakehouse.privacy.sealed_values import SealedValues, seal, unseal
from lakehouse.privacy.suppressed_people import SuppressedPerson, add_suppressed
from lakehouse.privacy.table_values import shared_values
from lakehouse.privacy.verifier.report import NotProved
from lakehouse.spark.spark_session import collect_garbage
from lakehouse.tables.person import folded, person_hmac
from lakehouse.tables.quoting import shown


def remove_unseen(erasable: Erasable, folders: Folders) -> Iterator[ScrubbedPlace]:
    """Remove what versioned buckets retain of removed files of some tables, and abort uploads that
    are a day old, which Iceberg does not see.

    A version of a file that any table references stays: the file was removed by mistake, and can
    be restored. Folders outside of the table's location and the deployment's bucket are skipped.

    :raises LakehouseError: if S3 denies the deletion of a version.
    """
    if erasable.settings.deployment != "aws":
        return
    from lakehouse.storage.s3 import open_bucket

    engine, own = erasable.engine.within(erasable.tables), open_bucket(erasable.settings)
    named: frozenset[str] | None = None
    for table, of_table in folders.items():
        location = folder_key(engine.catalog.load(table).location())
        for folder in filter(is_in_a_bucket, of_table):
            bucket, _, prefix = folder_key(folder).partition("/")
            if bucket != own.bucket and not folder_key(folder).startswith(location):
                # It can belong to another home.
                continue
            store = replace(own, bucket=bucket)
            versions = store.versions_of_removed(prefix)
            if versions and named is None:
                # This reads the manifests of all tables.
                named = named_by_any(engine)
            unnamed = [one for one in versions if f"{bucket}/{one.key}" not in (named or ())]
            store.remove_versions(unnamed)
            oldest = datetime.now(UTC) - YOUNGEST
            uploads = [one for one in store.uploads(prefix) if one.modified_at < oldest]
            store.abort_uploads(uploads)
            keys = {one.key for one in (*unnamed, *uploads)}
            if keys:
                yield ScrubbedPlace(folder, "removed", files=len(keys))


def note_request(erasure: Erasure) -> None:
    """Audit that the request was made; a completed one needs no more."""
    actions = [
        erasure.action("requested", subject=person.column, person=person.hmac)
        for person in erasure.request.people
    ]
    erasure.audit(*actions)
    erasure.note_confirmation()
    if erasure.request.is_final:
        erasure.end()


def identify(erasure: Erasure) -> None:
    """Find the people once: the rows that identify them are deleted later."""
    settings, request_id = erasure.erasable.settings, erasure.request.request_id
    sealed = unseal(settings, request_id)
    if not sealed.people:
        sealed = _find_people(erasure, sealed)
        seal(settings, request_id, sealed)
    if sealed.people:
        erasure.persons = sealed.people
        return
    erasure.note_places(tuple(unread_tables(erasure.erasable)))
    if unattended := erasure.record.unattended:
        # Tables that cannot be searched can contain them.
        erasure.move("exception", unreachable=[Unreachable(one.place) for one in unattended])
        erasure.is_stopped = True
        return
    erasure.move("not_found")
    erasure.end()


def _find_people(erasure: Erasure, sealed: SealedValues) -> SealedValues:
    erasable, key = erasure.erasable, hmac_key(erasure.erasable.settings)
    named = [Named(column, value) for column, value in sealed.named]
    persons, unknown = [], []
    for identity in erasure.found or find_people(erasable.engine, erasable.subjects, named):
        if identity.is_known or is_delivered(erasable, identity):
            persons.append(identity.person)
            continue
        subject = identity.person.subject.lower()
        digest = person_hmac(key, subject, identity.normal_id)
        unknown.append(erasure.action("not_found", subject=subject, person=digest))
    if unknown:
        erasure.audit(*unknown)
        erasure.keep(replace(erasure.record, unknown=len(unknown)))
    return replace(sealed, people=tuple(persons))


def is_delivered(erasable: Erasable, identity: Identity) -> bool:
    """Return whether a delivered file contains rows of a person whom no table contains."""
    for feed, holder, persons in erasable.feeds_of([identity.person]):
        people = people_in(holder, persons, frozenset())
        if find_in_files(erasable.store, feed, people, home=erasable.settings.home):
            return True
    return False


def suppress_people(erasure: Erasure) -> None:
    """Add the people to the suppression list before anything is deleted."""
    erasable = erasure.erasable
    key = hmac_key(erasable.settings)
    erased_at = erasure.record.erased_at or datetime.now(UTC)
    erasure.shared = shared_values(erasable.engine, erasable.subjects, erasure.persons)
    suppressed, hmacs, personal = [], [], []
    for person in erasure.persons:
        subject, own_name = subject_of(erasable.subjects, person), person.subject.lower()
        names = subject.names if own_name in subject.names else {own_name}
        for value in sorted(person.ids):
            for name in sorted({own_name, subject.name}):
                hmacs.append(person_hmac(key, name, value))
            for name in sorted(names):
                suppressed.append(
                    SuppressedPerson(name, person_hmac(key, name, value), erased_at)
                )
        for name, values in person.personal.items():
            own = sorted(map(folded, values - erasure.shared))
            personal += [person_hmac(key, name, value) for value in own if value]
    erasure.keep(
        replace(
            erasure.record,
            erased_at=erased_at,
            hmacs=tuple(dict.fromkeys(hmacs)),
            personal_hmacs=tuple(dict.fromkeys(personal)),
        )
    )
    add_suppressed(erasable.settings, suppressed)


def erase_files(erasure: Erasure) -> None:
    """Rewrite delivered files without the rows of the people; empty unreadable files that the
    caller named.
    """
    erasable, emptied = erasure.erasable, set[str]()
    erasure.keep(replace(erasure.record, unreadable=()))
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
        emptied |= rewritten.emptied
    text = PersonText(erasure.persons)
    remaining = [name for name in erasure.how.erase_whole if name not in emptied]
    erasure.not_emptied = tuple(shown(text.erased(name)) for name in remaining)
    files = erasure.record.files
    if files:
        hashes = sorted({one for file in files for one in (file.sha256, file.new_sha256)})
        counts = {"files": len(files), "rows": sum(file.rows for file in files)}
        digest = hashlib.sha256("\n".join(hashes).encode()).hexdigest()[:16]
        erasure.audit(
            erasure.action("files_rewritten", counts=counts, files=hashes),
            occasion=f"files_rewritten:{digest}",
        )


def _with_files(record: ErasureRecord, rewritten: FilesRewritten) -> ErasureRecord:
    files = {(file.key, file.sha256): file for file in (*record.files, *rewritten.files)}
    return replace(
        record,
        files=tuple(files[key] for key in sorted(files)),
        unreadable=tuple(dict.fromkeys((*record.unreadable, *rewritten.unreadable))),
    )


def erase_rows(erasure: Erasure) -> None:
    """Delete the rows of the people from all branches and tags, sources first."""
    erasable = erasure.erasable
    erasure.keep(replace(erasure.record, pending_removals=()))
    for holder, persons in erasable.holders(erasure.persons):
        people = people_in(holder, persons, erasure.shared)
        table = erasable.tables[holder.table]
        deleted = delete_rows(erasable.engine, table, people, erasure.request.request_id)
        erasure.keep(_with_rows(erasure.record, deleted))
    erasure.deleted_at = datetime.now(UTC)
    record = erasure.record
    if record.row_count:
        counts = {f"{table}.rows": sum(rows.values()) for table, rows in record.rows.items()}
        erasure.audit(
            erasure.action("rows_erased", counts=counts, snapshots=record.snapshots),
            occasion=f"rows_erased:{record.row_count}",
        )


def _with_rows(record: ErasureRecord, deleted: DeletedRows) -> ErasureRecord:
    """Add the deleted rows of a table; those of a killed call are in the commits."""
    before = record.rows.get(deleted.table, {})
    by_ref = dict(before)
    for ref, rows in deleted.rows.items():
        by_ref[ref] = by_ref.get(ref, 0) + rows
    in_commits: dict[str, int] = {}
    snapshots = dict(record.snapshots)
    for erased in deleted.of_request:
        in_commits[erased.ref] = in_commits.get(erased.ref, 0) + erased.rows
        snapshots[deleted.table] = erased.snapshot_id
    for ref, rows in in_commits.items():
        by_ref[ref] = max(by_ref.get(ref, 0), rows)
    pending = [f"{deleted.table}: {ref}: {why}" for ref, why in deleted.skipped.items()]
    former_tags = record.tags.get(deleted.table, ())
    tags = tuple(dict.fromkeys((*former_tags, *deleted.moved_tags, *deleted.dropped)))
    has_new = by_ref.get(MAIN, 0) > before.get(MAIN, 0)
    return replace(
        record,
        # The new rows can be in those places too.
        confirmed_places=() if has_new else record.confirmed_places,
        rows={**record.rows, deleted.table: by_ref} if by_ref else record.rows,
        snapshots=snapshots,
        tags={**record.tags, deleted.table: tags} if tags else record.tags,
        is_recomputed=record.is_recomputed and not has_new,
        pending_removals=(*record.pending_removals, *pending),
    )


def recompute_sums(erasure: Erasure) -> None:
    """Recompute the tables that aggregate rows of the people; all of them after a kill."""
    record, erasable = erasure.record, erasure.erasable
    if record.is_recomputed:
        return
    deleted_rows = {table: rows[MAIN] for table, rows in record.rows.items() if rows.get(MAIN)}
    sums = find_sums(erasable, erasure.persons, deleted_rows, erasure.shared)
    names = recompute_tables(erasable, erasure.request.request_id, sums, deleted_rows)
    recomputed = tuple(dict.fromkeys((*record.recomputed, *names)))
    kept = sums.kept or record.kept
    erasure.keep(replace(record, recomputed=recomputed, kept=kept, is_recomputed=True))


def scrub(erasure: Erasure) -> None:
    """Erase the people's values from all other places below the home."""
    erasable = erasure.erasable
    if erasure.deleted_at:
        wait_for_spark(
            erasable.settings,
            erasure.deleted_at,
            lambda: collect_garbage(erasable.engine.spark),
        )
    scrubbed = scrub_places(
        erasable.settings,
        erasable.by_all_names(erasure.persons),
        erasure.shared,
        erased_at=erasure.deleted_at,
    )
    erasure.note_places((*scrubbed, *unread_tables(erasable)))


def close_logically(erasure: Erasure) -> None:
    """Record that no reader sees the people."""
    if erasure.request.state == "requested":
        places = erasure.record.places
        counts = {"places": len(places), "values": sum(place.values for place in places)}
        rows = {"rows": erasure.record.row_count}
        erasure.audit(erasure.action("places_erased", counts=counts))
        erasure.audit(erasure.action("logically_deleted", counts=rows))
        erasure.move("logically_deleted")


def remove_physically(erasure: Erasure) -> None:
    """Remove what Iceberg retains of the rows, if it can be removed by now."""
    erasable = erasure.erasable
    tables = erasable.tables_of(erasure.persons)
    # Afterwards, nothing can reference former folders.
    folders = folders_of_holders(erasable, erasure.record.folders)
    known = {table: tuple(places) for table, places in folders.items() if places}
    erasure.keep(replace(erasure.record, folders=known))
    results = remove_from_files(
        erasable.engine.within(erasable.tables),
        tables,
        erasure.request.request_id,
        now=erasure.how.now,
        readers=erasable.readers,
        dependents=erasable.dependents,
    )
    removed = remove_unseen(erasable, {table.name: known[table.name] for table in tables})
    erasure.note_places(tuple(removed))
    retained = [
        result
        for result in results
        if result.outcome in ("partial", "failed") or result.had_conflict
    ]
    # The text of a foreign error can contain data.
    reasons = [f"{one.table}: {one.step}: {one.error or one.reason}" for one in retained]
    pending = tuple(dict.fromkeys((*erasure.record.pending_removals, *reasons)))
    erasure.keep(replace(erasure.record, pending_removals=pending))
    if not pending:
        erasure.audit(erasure.action("physically_deleted"))
        return
    erasure.audit(erasure.action("pending_physical"))
    erasure.move("pending_physical", physical_due_at=_due_at(retained))
    erasure.is_stopped = True


def _due_at(retained: Iterable[StepResult]) -> datetime:
    """Return when orphans are old enough; otherwise a write has to end, or an operator has to
    drop a tag.
    """
    later = datetime.now(UTC) + RETRY_AFTER
    due = [result.step_metrics.get("due_at", later.timestamp()) for result in retained]
    return datetime.fromtimestamp(max(due), UTC) if due else later


def verify_all(erasure: Erasure) -> None:
    """Search for the people everywhere; if any is found, the request stays in its state.

    In rows that cannot be assigned to columns, no search finds an id that is not distinctive.
    """
    report = search_persons(erasure.erasable, erasure.persons, erasure.record)
    gaps = [NotProved(file.key, "not readable", file.why) for file in erasure.record.unreadable]
    erasure.search_report = replace(report, not_proved=(*report.not_proved, *gaps))
    erasure.is_stopped = erasure.failed_search is not None


def conclude(erasure: Erasure) -> None:
    """Complete a proven request, unless the owner of another place has to act."""
    unattended = erasure.record.unattended
    if unattended:
        unreachable = [Unreachable(place.place) for place in unattended]
        erasure.audit(erasure.action("exception", counts={"places": len(unreachable)}))
        erasure.move("exception", unreachable=unreachable)
        return
    assert erasure.search_report is not None
    counts = {"files": erasure.search_report.files, "bytes": erasure.search_report.size_bytes}
    counts["shared"] = len(erasure.search_report.shared)
    erasure.audit(erasure.action("verified", counts=counts))
    erasure.move("verified")
    erasure.end()
