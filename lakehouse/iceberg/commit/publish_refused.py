"""A refused candidate published all the same, by a person who says why."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from lakehouse.errors import UsageError
from lakehouse.iceberg.commit import branch
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.commit.snapshot_properties import commit_without_rows
from lakehouse.iceberg.commit.told_writes import published_of, told
from lakehouse.iceberg.metadata.commit_properties import PREFIX, CommitProperties
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import History, Snapshot, read_history
from lakehouse.iceberg.metadata.write_context import Run
from lakehouse.iceberg.metadata.write_events import BegunWrite
from lakehouse.iceberg.metadata.write_result import Pin
from lakehouse.tables.table import IcebergTable
from lakehouse.tables.upkeep import in_days

OVERRIDDEN_BY, OVERRIDDEN_FOR = f"{PREFIX}overridden-by", f"{PREFIX}overridden-for"
"""Keys of the snapshot's summary that say who published it against its rules, and why."""
_BRANCH, _BEFORE = f"{PREFIX}overridden-branch", f"{PREFIX}overridden-before"
"""Keys that say of which branch it was, and which snapshot main had before: by them a command
that was killed is finished.
"""


@dataclass(frozen=True)
class Overridden:
    """What was published against its rules: the snapshot that main has now, of which run, its
    rows, and the snapshot that main had before; None where it had none. `by` and `why` are those
    that the snapshot tells; `is_again` says that it was published by an earlier command.
    """

    table: str
    run_id: str
    snapshot_id: int
    branch: str
    rows: int
    before_snapshot_id: int | None
    by: str = ""
    why: str = ""
    is_again: bool = False


def publish_refused(
    engine: Engine, table: IcebergTable, run_id: str, *, by: str, why: str
) -> Overridden:
    """Move main to the candidate that a run staged and its rules refused; a commit on top says
    who wanted it, and why. Nothing is published where main has that already.

    :param run_id: the run, or enough of the begin of its id.
    :raises UsageError: when there is no such candidate, or when main moved on since; nothing is
        published then.
    """
    with table_lock(engine, table.name):
        history = read_history(engine, table.name)
        again = _published_already(history, run_id)
        if again is not None:
            branch.drop_branch(engine, table.name, again.branch)
            return again
        kept_for = table.upkeep_policy.refused_for
        name, candidate = _prepared(history, run_id, kept_for)
        main = history.main
        if (
            main is not None
            and history.between(main.snapshot_id, candidate.snapshot_id) is None
        ):
            raise UsageError(
                f"{table.name} was written since run {_run(candidate)[:8]} was refused;"
                " expected main at the snapshot that the candidate was made from.",
                next_step=(
                    f"Compute it anew with `lakehouse retry {table.name}`, and publish that"
                    " where it is refused."
                ),
            )
        # The last commit of the candidate may be an erasure.
        commit = candidate.commit or CommitProperties("write", "")
        write_id = branch.new_write_id()
        with told(engine, _begun(table, write_id, commit)) as tell:
            noted = replace(commit, kind="write", write_id=write_id)
            words = {OVERRIDDEN_BY: by, OVERRIDDEN_FOR: why, _BRANCH: name}
            if main is not None:
                words[_BEFORE] = str(main.snapshot_id)
            _note(engine, table, name, noted, words)
            branch.fast_forward(engine, table.name, name, write_id)
            after = read_history(engine, table.name)
            published = after.main
            assert published is not None
            outcome = published_of(table.name, after.line, write_id, commit.write_id)
            assert outcome is not None
            tell(outcome)
        branch.drop_branch(engine, table.name, name)
        return Overridden(
            table.name,
            _run(candidate),
            published.snapshot_id,
            name,
            published.rows,
            main.snapshot_id if main else None,
            by,
            why,
        )


def _published_already(history: History, run_id: str) -> Overridden | None:
    """Return the candidate of a run where main has it as a person published it; None where main
    has something else, or does not tell from which branch.
    """
    main = history.main
    if main is None or not run_id or not _run(main).startswith(run_id):
        return None
    if _BRANCH not in main.summary:
        return None
    before = main.summary.get(_BEFORE)
    return Overridden(
        history.table,
        _run(main),
        main.snapshot_id,
        main.summary[_BRANCH],
        main.rows,
        None if before is None else int(before),
        main.summary[OVERRIDDEN_BY],
        main.summary[OVERRIDDEN_FOR],
        is_again=True,
    )


def _begun(table: IcebergTable, write_id: str, candidate: CommitProperties) -> BegunWrite:
    """Return the publishing as a write of its own, of the run and from the inputs that the
    candidate was computed from.
    """
    read = candidate.read or candidate.inputs
    pins = {name: Pin(name, snapshot_id) for name, snapshot_id in read.items()}
    return BegunWrite(table, write_id, Run(candidate.run_id), pins)


def _prepared(history: History, run_id: str, kept_for: timedelta) -> tuple[str, Snapshot]:
    """Return the newest candidate of a run that is kept, and its branch."""
    kept: dict[str, Snapshot] = {}
    for name, snapshot_id in history.refs.items():
        if branch.is_refused(name):
            kept[name] = history.snapshots[snapshot_id]
    of_run = {
        name: candidate
        for name, candidate in kept.items()
        if run_id and _run(candidate).startswith(run_id)
    }
    if not of_run:
        runs = sorted({_run(candidate)[:8] for candidate in kept.values()})
        known = ", ".join(runs) or "of no run"
        raise UsageError(
            f"{history.table} keeps no refused candidate of run {run_id!r}; it keeps those"
            f" {known}.",
            next_step=(
                f"They are kept for {in_days(kept_for)}; `lakehouse retry {history.table}` makes a"
                " new one."
            ),
        )
    name = max(of_run, key=lambda name: of_run[name].committed_at)
    return name, of_run[name]


def _run(candidate: Snapshot) -> str:
    return candidate.commit.run_id if candidate.commit else ""


def _note(
    engine: Engine,
    table: IcebergTable,
    name: str,
    commit: CommitProperties,
    words: Mapping[str, str],
) -> None:
    """Commit nothing but the words, on top of the candidate; all else is as the candidate says,
    so that it is not stale.
    """
    commit_without_rows(engine, table.name, {**commit.to_summary(), **words}, branch=name)
