"""Publish a blocked candidate by a user's decision, with a reason."""

from dataclasses import dataclass, replace
from datetime import timedelta

from lakehouse.errors import UsageError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit import branch
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.commit.snapshot_properties import commit_without_rows
from lakehouse.iceberg.commit.write_notifications import notifying, published_of
from lakehouse.iceberg.metadata.commit_record import PREFIX, CommitProperties
from lakehouse.iceberg.metadata.snapshots import History, Snapshot, read_history
from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.values.write_events import BegunWrite
from lakehouse.iceberg.values.write_result import Pin
from lakehouse.tables.table import IcebergTable
from lakehouse.tables.upkeep import duration_text

OVERRIDDEN_BY, OVERRIDDEN_FOR = f"{PREFIX}overridden-by", f"{PREFIX}overridden-for"
"""Summary keys with the user who published despite the rules, and the reason."""
_BRANCH = f"{PREFIX}overridden-branch"
"""Summary key with the candidate's branch, to finish a killed command."""


@dataclass(frozen=True)
class Overridden:
    """A candidate that was published despite its rules.

    `rows` is the number of rows of the table. `by` and `why` come from the snapshot;
    `is_again` is true if an earlier command published it.
    """

    table: str
    run_id: str
    snapshot_id: int
    branch: str
    rows: int
    by: str
    why: str
    is_again: bool = False


def publish_blocked(
    engine: Engine, table: IcebergTable, run_id: str, *, by: str, why: str
) -> Overridden:
    """Move main to the blocked candidate of a run, if main does not have it already.

    A commit on top records the user and the reason.

    :param run_id: the run id, or a unique prefix.
    :raises UsageError: if there is no such candidate, or if main has moved since.
    """
    with table_lock(engine, table.name):
        history = read_history(engine, table.name)
        earlier = _published_already(history, run_id)
        if earlier is not None:
            branch.drop_branch(engine, table.name, earlier.branch)
            return earlier
        kept_for = table.upkeep_policy.refused_for
        name, candidate = _prepared(history, run_id, kept_for)
        main = history.main
        if (
            main is not None
            and history.between(main.snapshot_id, candidate.snapshot_id) is None
        ):
            raise UsageError(
                f"{table.name} was written since run {_run(candidate)[:8]} was blocked;"
                " expected main at the snapshot that the candidate was made from.",
                next_step=(
                    f"Compute it again with `lakehouse retry {table.name}`, and publish that"
                    " if it is blocked."
                ),
            )
        # The last commit of the candidate can be an erasure.
        commit = candidate.commit or CommitProperties("write", "")
        write_id = branch.new_write_id()
        read = commit.read or commit.inputs
        pins = {name: Pin(name, snapshot_id) for name, snapshot_id in read.items()}
        with notifying(engine, BegunWrite(table, write_id, Run(commit.run_id), pins)) as report:
            recorded = replace(commit, kind="write", write_id=write_id)
            # On top of the candidate, with its commit properties, so that it is not stale.
            properties = {OVERRIDDEN_BY: by, OVERRIDDEN_FOR: why, _BRANCH: name}
            summary = {**recorded.to_summary(), **properties}
            commit_without_rows(engine, table.name, summary, branch=name)
            branch.fast_forward(engine, table.name, name, write_id)
            after = read_history(engine, table.name)
            published = after.main
            assert published is not None
            outcome = published_of(table.name, after.line, write_id, commit.write_id)
            assert outcome is not None
            report(outcome)
        branch.drop_branch(engine, table.name, name)
        return Overridden(
            table.name, _run(candidate), published.snapshot_id, name, published.rows, by, why
        )


def _published_already(history: History, run_id: str) -> Overridden | None:
    """Return the candidate of a run if a user has published it as the current snapshot."""
    main = history.main
    if main is None or not run_id or not _run(main).startswith(run_id):
        return None
    if _BRANCH not in main.summary:
        return None
    return Overridden(
        history.table,
        _run(main),
        main.snapshot_id,
        main.summary[_BRANCH],
        main.rows,
        main.summary[OVERRIDDEN_BY],
        main.summary[OVERRIDDEN_FOR],
        is_again=True,
    )


def _prepared(history: History, run_id: str, kept_for: timedelta) -> tuple[str, Snapshot]:
    """Return the newest retained candidate of a run, and its branch."""
    kept: dict[str, Snapshot] = {}
    for name, snapshot_id in history.refs.items():
        if branch.is_blocked(name):
            kept[name] = history.snapshots[snapshot_id]
    of_run = {
        name: candidate
        for name, candidate in kept.items()
        if run_id and _run(candidate).startswith(run_id)
    }
    if len({_run(candidate) for candidate in of_run.values()}) != 1:
        runs = sorted({_run(candidate)[:8] for candidate in kept.values()})
        known = ", ".join(runs) or "no run"
        found = "more than one" if of_run else "no"
        raise UsageError(
            f"{history.table} has {found} blocked candidate of run {run_id!r}; it has those of"
            f" {known}.",
            next_step=(
                f"They are kept for {duration_text(kept_for)};"
                f" `lakehouse retry {history.table}` creates a new one."
            ),
        )
    name = max(of_run, key=lambda name: of_run[name].committed_at)
    return name, of_run[name]


def _run(candidate: Snapshot) -> str:
    return candidate.commit.run_id if candidate.commit else ""
