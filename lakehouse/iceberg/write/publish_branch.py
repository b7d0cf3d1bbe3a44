"""How a staged write ends: main moves to it, or it is kept aside, or nothing was to be done."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lakehouse.iceberg.commit import branch
from lakehouse.iceberg.commit.retry import FenceLost
from lakehouse.iceberg.commit.table_property import set_property
from lakehouse.iceberg.metadata.code_versions import NOTED_CODE, computed_parts, noted_version
from lakehouse.iceberg.metadata.computed_parts import ComputedPart
from lakehouse.iceberg.metadata.history import UNCHANGED_PROPERTY, History, Snapshot
from lakehouse.iceberg.metadata.write_result import (
    Published,
    Quarantined,
    Refused,
    RuleResult,
    Unchanged,
)
from lakehouse.iceberg.rules.evaluation import evaluate_age
from lakehouse.iceberg.write.due_removals import note_removal
from lakehouse.iceberg.write.write_attempt import Attempt


def publish(
    attempt: Attempt, results: Sequence[RuleResult], quarantined: Quarantined | None, tries: int
) -> Published:
    """Move main to the branch; counts come from the snapshots' summaries, without a scan.

    What is only looked at stays on its branch.

    All that can fail comes first: an error after main was moved would have the write repeated.

    :raises Exception: of Iceberg, when another writer moved main; nothing is published then.
    """
    history = attempt.history()
    head = history.refs.get(attempt.branch)
    commits = _own_commits(history, attempt, head)
    assert head is not None
    published = Published(
        table=attempt.table.name,
        write_id=attempt.write_id,
        snapshot_id=head,
        results=tuple(results),
        pins=attempt.pins,
        partitions=attempt.run.partition_values,
        quarantined=quarantined,
        attempts=tries,
        operation=commits[-1].operation if commits else "",
        added_rows=sum(commit.count("added-records") for commit in commits),
        deleted_rows=sum(commit.count("deleted-records") for commit in commits),
        added_files=sum(commit.count("added-data-files") for commit in commits),
        added_bytes=sum(commit.count("added-files-size") for commit in commits),
        row_count=history.snapshots[head].rows,
    )
    if attempt.look:
        attempt.look(attempt)
        return published
    note_removal(attempt, publishes=True)
    branch.fast_forward(attempt.engine, attempt.table.name, attempt.branch, attempt.write_id)
    return published


def refuse(
    attempt: Attempt,
    results: Sequence[RuleResult],
    quarantined: Quarantined | None,
    tries: int,
    *,
    staged: bool = True,
) -> Refused:
    """Leave main as it is, and keep the candidate on a branch where there is one."""
    history = attempt.history()
    main = history.main
    candidate_id = history.refs[attempt.branch] if staged else None
    kept_for, kept = attempt.table.upkeep_policy.refused_for, ""
    if candidate_id and attempt.look:
        attempt.look(attempt)
    elif candidate_id:
        kept = branch.keep_refused(
            attempt.engine, attempt.table.name, attempt.write_id, candidate_id, kept_for
        )
    return Refused(
        table=attempt.table.name,
        write_id=attempt.write_id,
        snapshot_id=main.snapshot_id if main else None,
        results=tuple(results),
        pins=attempt.pins,
        partitions=attempt.run.partition_values,
        quarantined=quarantined,
        attempts=tries,
        branch=kept,
        kept_for=kept_for,
        candidate_snapshot_id=candidate_id,
    )


def unchanged(
    attempt: Attempt, results: Sequence[RuleResult], quarantined: Quarantined | None, tries: int
) -> Unchanged:
    """Say that no row would change."""
    history = attempt.history()
    main = history.main
    return Unchanged(
        table=attempt.table.name,
        write_id=attempt.write_id,
        snapshot_id=main.snapshot_id if main else None,
        results=(*results, *evaluate_age(attempt.engine, attempt.table, history)),
        pins=attempt.pins,
        partitions=attempt.run.partition_values,
        quarantined=quarantined,
        attempts=tries,
    )


def remember_unchanged(attempt: Attempt) -> None:
    """Note in the table's properties how far its inputs were read without a row changing, and by
    which code all rows would be computed as they are; before that, what leaves the quarantine.

    A commit would be needless, and without the note the same input would be read again each
    time. The note names the snapshot of main that it holds for, so that it lapses with a
    rollback.
    """
    note_removal(attempt, publishes=False)
    history = attempt.history()
    inputs, code_version = attempt.properties.inputs, _code_of_all(attempt)
    # What was compared is the fence's snapshot; main may have been moved since by a writer that
    # read older inputs.
    if history.main is None or history.main.snapshot_id != attempt.base.snapshot_id:
        return
    is_read = all(history.watermark(source) == pinned for source, pinned in inputs.items())
    parts = computed_parts(history)
    is_computed = not code_version or parts == (ComputedPart(frozenset({code_version})),)
    if is_read and is_computed:
        return
    note: dict[str, Any] = {
        "snapshot": str(history.main.snapshot_id),
        "inputs": {source: str(pinned) for source, pinned in inputs.items()},
    }
    if code_version or noted_version(history):
        note[NOTED_CODE] = code_version or noted_version(history)
    set_property(attempt.engine, attempt.table.name, UNCHANGED_PROPERTY, json.dumps(note))


def _code_of_all(attempt: Attempt) -> str:
    """Return the version of the code that an attempt computed all rows by; empty where it did
    not, or it is not known.
    """
    properties = attempt.properties
    is_all = not properties.keeps_rows and attempt.run.partitions is None
    return properties.code_version if is_all else ""


def with_counts(published: Published, **counts: int | Mapping[str, float] | None) -> Published:
    """Return a publication with counts that only its way of writing knows."""
    return replace(published, **counts)  # type: ignore[arg-type]


def _own_commits(history: History, attempt: Attempt, head: int | None) -> list[Snapshot]:
    """Return what stands between the fence and the branch's head, having seen that it is this
    attempt's alone.

    A commit to a branch that somebody has dropped brings it back, on top of what main is by
    then.
    """
    commits = None if head is None else history.between(attempt.base.snapshot_id, head)
    if commits is None or any(
        not snapshot.commit or snapshot.commit.write_id != attempt.write_id
        for snapshot in commits
    ):
        raise FenceLost(
            f"{attempt.branch} of {attempt.table.name} was dropped while it was written"
        )
    return commits
