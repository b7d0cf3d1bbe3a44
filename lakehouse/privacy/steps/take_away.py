"""Steps after which no reader sees the people: in files, rows, sums, and anywhere else."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from lakehouse.iceberg.erasure.delete_rows import DeletedRows, delete_rows
from lakehouse.iceberg.metadata.history import MAIN
from lakehouse.privacy.compute_anew import compute_anew
from lakehouse.privacy.delivered_files import (
    FilesRewritten,
    add_reasons,
    rewrite_files,
)
from lakehouse.privacy.erased_people import by_all_names, people_in
from lakehouse.privacy.erasure import Erasure
from lakehouse.privacy.erasure_record import ErasedFile, ErasureRecord
from lakehouse.privacy.person_rows import PersonText
from lakehouse.privacy.places.left_folders import wait_for_spark
from lakehouse.privacy.places.scrub import scrub_places
from lakehouse.privacy.sums import find_sums
from lakehouse.privacy.unread_tables import unread_tables
from lakehouse.runtime.spark import collect_garbage
from lakehouse.tables.escaping import shown

_NO_SUCH_FILE = (
    "no feed that can contain the person has a delivered file with that key or SHA-256; remove a"
    " file of another feed yourself"
)


def erase_files(erasure: Erasure) -> None:
    """Rewrite delivered files without the rows of the people; empty unreadable files that the
    caller named.
    """
    erasable, request_id = erasure.erasable, erasure.request.request_id
    store, home, named = erasable.store, erasable.settings.home, dict[str, str]()
    erasure.keep(replace(erasure.record, unreadable=()))
    for feed, holder, persons in erasable.feeds_of(erasure.persons):
        rewritten = rewrite_files(
            store,
            feed,
            people_in(holder, persons, erasure.shared),
            request_id,
            home=home,
            erase_whole=erasure.how.erase_whole,
        )
        erasure.keep(_with_files(erasure.record, rewritten))
        add_reasons(named, rewritten.named)
    erasure.not_emptied = _not_emptied(erasure, named)
    _audit_files(erasure)


def _not_emptied(erasure: Erasure, named: Mapping[str, str]) -> tuple[str, ...]:
    """Say of each file that was to be emptied and was not, why, without a value of the people."""
    text = PersonText(erasure.persons)
    whys = {name: named.get(name, _NO_SUCH_FILE) for name in erasure.how.erase_whole}
    return tuple(f"{shown(text.erased(name))}: {why}" for name, why in whys.items() if why)


def _audit_files(erasure: Erasure) -> None:
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
    known = {(file.key, file.sha256): file for file in files}
    return replace(
        record,
        files=tuple(sorted(known.values(), key=lambda file: (file.key, file.sha256))),
        unreadable=tuple(dict.fromkeys((*record.unreadable, *rewritten.unreadable))),
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
    if erasure.gone_at:
        wait_for_spark(
            erasable.settings, erasure.gone_at, lambda: collect_garbage(erasable.engine.spark)
        )
    scrubbed = scrub_places(
        erasable.settings,
        by_all_names(erasable, erasure.persons),
        erasure.shared,
        gone_at=erasure.gone_at,
    )
    erasure.note_places((*scrubbed, *unread_tables(erasable)))


def close_logically(erasure: Erasure) -> None:
    """Say that no reader sees the people any more."""
    if erasure.request.state == "requested":
        values = sum(place.values for place in erasure.record.places)
        counts = {"places": len(erasure.record.places), "values": values}
        erasure.audit("places_erased", counts=counts)
        erasure.audit("logically_deleted", counts={"rows": erasure.record.row_count})
        erasure.move("logically_deleted")
