"""Steps that remove what Iceberg keeps of the rows, search for the people, and end the request."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from lakehouse.iceberg.erasure.remove_from_files import remove_from_files
from lakehouse.iceberg.upkeep.step_result import StepResult
from lakehouse.privacy.erasure import Erasure
from lakehouse.privacy.places.unseen_by_iceberg import remove_unseen
from lakehouse.privacy.proof import prove
from lakehouse.privacy.searched_roots import folders_of_holders
from lakehouse.privacy.states import Unreachable

_TRIED_AGAIN_AFTER = timedelta(hours=1)
"""When what gave way to a writer is tried again."""


def remove_physically(erasure: Erasure) -> None:
    """Remove what Iceberg keeps of the rows, as far as it may go by now."""
    erasable, request_id = erasure.erasable, erasure.request.request_id
    tables, dependents = erasable.tables_of(erasure.persons), erasable.dependents
    engine = erasable.engine.within(erasable.tables)
    # What is removed here may be all that leads to where a table was before.
    folders = folders_of_holders(erasable, erasure.record.folders)
    of_tables = {table: tuple(places) for table, places in folders.items() if places}
    erasure.keep(replace(erasure.record, folders=of_tables))
    results = remove_from_files(
        engine,
        tables,
        request_id,
        now=erasure.how.now,
        readers=erasable.readers,
        dependents=dependents,
    )
    of_people = {table.name: of_tables[table.name] for table in tables}
    erasure.note_places(tuple(remove_unseen(erasable, of_people)))
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
    return result.outcome in ("partial", "failed") or result.had_conflict


def _left_text(result: StepResult) -> str:
    # What others raised may quote data.
    reason = result.error or result.reason
    return f"{result.table}: {result.step}: {reason}"


def _due_at(result: StepResult) -> datetime:
    due_at = result.step_metrics.get("due_at")
    if due_at is None:
        return datetime.now(UTC) + _TRIED_AGAIN_AFTER
    return datetime.fromtimestamp(due_at, UTC)


def verify_all(erasure: Erasure) -> None:
    """Prove that the people are gone; without a proof the request stays as it is."""
    erasure.proof = prove(erasure.erasable, erasure.persons, erasure.record)
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
    erasure.end()
