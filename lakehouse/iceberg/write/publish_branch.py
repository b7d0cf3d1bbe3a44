"""End of a staged write: publish, keep the blocked candidate, or report that nothing changed."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lakehouse.iceberg.commit import branch
from lakehouse.iceberg.commit.commit_retries import FenceLost
from lakehouse.iceberg.commit.snapshot_properties import set_property
from lakehouse.iceberg.commit.write_notifications import published_of
from lakehouse.iceberg.metadata.code_versions import (
    computed_parts,
    recorded_code_version,
)
from lakehouse.iceberg.metadata.commit_record import ComputedPart
from lakehouse.iceberg.metadata.snapshots import MAIN, History, Snapshot
from lakehouse.iceberg.metadata.unchanged_watermarks import UNCHANGED_PROPERTY, UnchangedRun
from lakehouse.iceberg.rules.evaluation import evaluate_age
from lakehouse.iceberg.values.write_result import (
    Published,
    Quarantined,
    Refused,
    RuleResult,
    Unchanged,
)
from lakehouse.iceberg.write.due_removals import note_removal
from lakehouse.iceberg.write.write_attempt import Attempt


def publish(
    attempt: Attempt, results: Sequence[RuleResult], quarantined: Quarantined | None
) -> Published:
    """Let the driver publish the branch; counts come from snapshot summaries, without a scan.

    Everything that can fail comes before it: an error after it would repeat the write.

    :raises Exception: of Iceberg, if another writer moved main; nothing is published then.
    """
    history = attempt.history()
    head = history.refs.get(attempt.branch)
    commits = _own_commits(history, attempt, head)
    written = published_of(attempt.table.name, commits[::-1], attempt.write_id)
    assert written is not None
    published = replace(written, **_common(attempt, results, quarantined))
    attempt.driver.publish(attempt)
    return published


def block(
    attempt: Attempt,
    results: Sequence[RuleResult],
    quarantined: Quarantined | None,
    *,
    staged: bool = True,
) -> Refused:
    """Leave main unchanged, and keep the candidate's branch if there is one."""
    history = attempt.history()
    candidate_id = history.refs[attempt.branch] if staged else None
    return Refused(
        **_common(attempt, results, quarantined),
        snapshot_id=history.refs.get(MAIN),
        branch=attempt.driver.block(attempt, candidate_id) if candidate_id else "",
        kept_for=attempt.table.upkeep_policy.refused_for,
        candidate_snapshot_id=candidate_id,
    )


def unchanged(
    attempt: Attempt, results: Sequence[RuleResult], quarantined: Quarantined | None
) -> Unchanged:
    """Return the outcome of a write that changes no row."""
    history = attempt.history()
    results = (*results, *evaluate_age(attempt.engine, attempt.table, history))
    return Unchanged(
        **_common(attempt, results, quarantined), snapshot_id=history.refs.get(MAIN)
    )


def _common(
    attempt: Attempt, results: Sequence[RuleResult], quarantined: Quarantined | None
) -> dict[str, Any]:
    """Return the fields that all outcomes of an attempt have."""
    return {
        "table": attempt.table.name,
        "write_id": attempt.write_id,
        "results": tuple(results),
        "pins": attempt.fence.pins,
        "partitions": attempt.run.partition_values,
        "quarantined": quarantined,
        "attempts": attempt.number,
    }


def fast_forward(attempt: Attempt) -> None:
    """Fast-forward main to the branch."""
    note_removal(attempt)
    branch.fast_forward(attempt.engine, attempt.table.name, attempt.branch, attempt.write_id)


def keep_blocked(attempt: Attempt, candidate_id: int) -> str:
    """Retain the branch of a blocked candidate, and return its new name."""
    note_removal(attempt)
    kept_for = attempt.table.upkeep_policy.refused_for
    return branch.keep_blocked(
        attempt.engine, attempt.table.name, attempt.write_id, candidate_id, kept_for
    )


def remember_unchanged(attempt: Attempt) -> None:
    """Record the inputs and the code version of a write that changed no row, in a property.

    Without it, the same input would be read each time.
    """
    history = attempt.history()
    inputs, code_version = attempt.properties.inputs, _code_of_all(attempt)
    # The rows were compared with the base snapshot. Another writer, which read older inputs,
    # can have moved main since.
    if history.main is None or history.main.snapshot_id != attempt.base.snapshot_id:
        return
    is_read = all(history.watermark(source) == pinned for source, pinned in inputs.items())
    parts = computed_parts(history)
    is_computed = not code_version or parts == (ComputedPart(frozenset({code_version})),)
    if is_read and is_computed:
        return
    code_version = code_version or recorded_code_version(history)
    run = UnchangedRun(history.main.snapshot_id, inputs, code_version)
    set_property(attempt.engine, attempt.table.name, UNCHANGED_PROPERTY, run.to_property())


def _code_of_all(attempt: Attempt) -> str:
    """Return the version of the code that computed all rows; empty if unknown."""
    properties = attempt.properties
    is_all = not properties.keeps_rows and attempt.run.partitions is None
    return properties.code_version if is_all else ""


def _own_commits(history: History, attempt: Attempt, head: int | None) -> list[Snapshot]:
    """Return the commits since the base, after checking that all are of this attempt.

    A late commit to a dropped branch creates it again, on top of the current main.
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
