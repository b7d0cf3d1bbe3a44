"""The lifecycle of a write: fence, pin, compare, stage, audit, publish.

Readers of main never see unaudited rows: every write is staged on its own branch, and main is
fast-forwarded to it after the rules were evaluated on the changes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from lakehouse.errors import FrameMismatch, WriteConflict
from lakehouse.iceberg.commit import branch
from lakehouse.iceberg.commit.lock import WriteLog, table_lock
from lakehouse.iceberg.commit.retry import (
    LOST_ROWS_ATTEMPTS,
    WRITE_ATTEMPTS,
    Failure,
    FenceLost,
    classify,
    pause,
)
from lakehouse.iceberg.commit.told_writes import tell_of_dead, told
from lakehouse.iceberg.erasure.erase_again import erase_again
from lakehouse.iceberg.erasure.gone_people import NOBODY_GONE, GonePeople, LeftOut
from lakehouse.iceberg.evolve import planning
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import read_history
from lakehouse.iceberg.metadata.write_context import Run
from lakehouse.iceberg.metadata.write_events import NOBODY_LISTENS, BegunWrite
from lakehouse.iceberg.metadata.write_result import Outcome, Refused, Unchanged
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.pinned_frames import read_inputs
from lakehouse.iceberg.read.pinned_inputs import read_since
from lakehouse.iceberg.read.read_plan import ReadPlan, plan_read
from lakehouse.iceberg.read.row_version_inputs import with_version_reads
from lakehouse.iceberg.read.rows_outside_partitions import (
    OutsidePartitions,
    find_left_out,
    stamped,
)
from lakehouse.iceberg.read.scanned_files import with_scanned
from lakehouse.iceberg.read.stale_partitions import affected_partitions, watermarks
from lakehouse.iceberg.rules.evaluation import evaluate_age
from lakehouse.iceberg.write.append_or_overwrite import rows_attempt
from lakehouse.iceberg.write.due_removals import finish_removals
from lakehouse.iceberg.write.kept_rows import KeptRows, keeping_rows
from lakehouse.iceberg.write.merge_rows import merge_attempt
from lakehouse.iceberg.write.needed_tables import require_needed
from lakehouse.iceberg.write.prepared_frame import (
    DELETED,
    with_all_columns,
    with_implied_rules,
)
from lakehouse.iceberg.write.publish_branch import remember_unchanged
from lakehouse.iceberg.write.quarantine import Write
from lakehouse.iceberg.write.quarantine_outside_partitions import (
    evaluate_left_out,
    quarantine_left_out,
    with_left_out,
)
from lakehouse.iceberg.write.quarantine_removals import plan_decided
from lakehouse.iceberg.write.row_versions import gives_keys_once, select_versions
from lakehouse.iceberg.write.withdrawn_rows import following
from lakehouse.iceberg.write.write_attempt import Attempt, CheckAdded
from lakehouse.tables.table import IcebergTable, Merge

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Compute = Callable[..., "DataFrame"]
Look = Callable[[Attempt], None]


def write(
    engine: Engine,
    table: IcebergTable,
    compute: Compute,
    inputs: Mapping[str, Input] | None = None,
    run: Run | None = None,
    *,
    arriving: Sequence[tuple[Any, ...]] | None = None,
    check_added: CheckAdded | None = None,
    gone: GonePeople = NOBODY_GONE,
    look: Look | None = None,
) -> Outcome:
    """Compute a table and publish the result if its rules pass; creates and evolves the table
    first.

    :param compute: called with the pinned DataFrame of each input by name; called again with
        new pins after a conflict, or after executors with computed rows were lost.
    :param arriving: for an append, the `once_by` values if the caller knows them; avoids a
        scan.
    :param check_added: called with the number of rows that an append of `arriving` values has
        staged, before the publish; raises if they are wrong.
    :param gone: the suppression list; rows of these data subjects are filtered out.
    :param look: for a dry run, called with its staged rows; see
        `lakehouse.iceberg.write.preview`.
    :returns: `Published`, `Refused` (a blocking rule failed, main is unchanged), or `Unchanged`
        (nothing to commit).
    :raises WriteConflict: after repeated conflicts with other writers.
    :raises FrameMismatch: if the DataFrame does not match the declaration.
    :raises EvolutionRefused, PendingChanges: if a user must change the table first.
    """
    run, declared = run or Run(), inputs or {}
    inputs, compute = with_version_reads(table, declared), checked(table, compute)
    if look is None:
        _erase_again(engine, table, inputs, gone)
    with table_lock(engine, table.name) as log, keeping_rows(engine) as kept:
        compute = select_versions(table, declared, compute, run.partitions, kept.keep)
        set_out = partial(
            replace,
            look=look,
            keep=kept.keep,
            check_added=check_added,
            gives_keys_once=gives_keys_once(table, declared),
            reads_keys=any(read.mode == "changed_keys" for read in declared.values()),
        )
        attempt = partial(_attempt, engine, table, compute, inputs, run, gone, look, set_out)
        if look is None:
            _make_ready(engine, table, inputs, run, gone, log)
        once = partial(attempt, log=log, arriving=arriving)
        return _until_published(engine, table, inputs, run, look, once, kept)


def _until_published(
    engine: Engine,
    table: IcebergTable,
    inputs: Mapping[str, Input],
    run: Run,
    look: Look | None,
    attempt: Callable[..., Outcome],
    kept: KeptRows,
) -> Outcome:
    """Retry with new pins after conflicts with other writers."""
    # A dry run is not reported to listeners.
    reporting_engine = engine if look is None else replace(engine, listener=NOBODY_LISTENS)
    failures: list[Exception] = []
    for number in range(1, WRITE_ATTEMPTS + 1):
        plan = plan_read(engine, table, inputs, run)
        if look is None:
            # Removals of a run that was killed after its publish.
            finish_removals(engine, table, plan.target, write)
        if not plan.has_news:
            return _unchanged(engine, table, run, plan, number)
        leaving: list[DataFrame] = []
        write_id = branch.new_write_id()
        try:
            with told(reporting_engine, BegunWrite(table, write_id, run, plan.pins)) as tell:
                outcome = attempt(write_id, plan, number=number, leaving=leaving)
                tell(outcome)
        except Exception as error:
            failures.append(error)
            if _is_final(failures):
                raise
            kept.forget()
        else:
            if leaving and look is None and not isinstance(outcome, Refused):
                finish_removals(engine, table, read_history(engine, table.name), write)
            return outcome
        pause(number)
    raise _repeated_conflict(table, failures[-1]) from failures[-1]


def _is_final(failures: Sequence[Exception]) -> bool:
    """Whether a retry is useless after some failures, the last of which is new."""
    kinds = [classify(failure) for failure in failures]
    return kinds[-1] is Failure.OTHER or kinds.count(Failure.LOST) == LOST_ROWS_ATTEMPTS


def _repeated_conflict(table: IcebergTable, last: Exception) -> WriteConflict:
    return WriteConflict(
        f"{table.name} was not written: other writers came first {WRITE_ATTEMPTS} times, "
        f"last with {_first_line(last)!r}.",
        next_step="Nothing was lost; run this again when the table is less busy.",
    )


def _leave_as_it_is(engine: Engine, table: IcebergTable, *_: Any, **__: Any) -> Unchanged:
    """Replace the write of a quarantine in a dry run: nothing is written."""
    main = read_history(engine, table.name).main
    return Unchanged(table.name, "", main.snapshot_id if main else None)


def _make_ready(
    engine: Engine,
    table: IcebergTable,
    inputs: Mapping[str, Input],
    run: Run,
    gone: GonePeople,
    log: WriteLog,
) -> None:
    """Create and evolve the table and its quarantine, and clean up after dead writers; create
    nothing if an input does not exist.
    """
    require = partial(require_needed, engine, table, inputs, gone.tables, gone.sources)
    planning.ensure(engine, table, run.run_id, before_creation=require)
    _ensure_quarantine(engine, table, run)
    branch.drop_dead_branches(engine, table.name, log)
    tell_of_dead(engine, table)


def _ensure_quarantine(engine: Engine, table: IcebergTable, run: Run) -> None:
    """Create the quarantine with its table, so that it can be read before the first rejected
    row.
    """
    if table.quarantine:
        with table_lock(engine, table.quarantine.name):
            planning.ensure(engine, table.quarantine, run.run_id)
            tell_of_dead(engine, table.quarantine)


def _attempt(
    engine: Engine,
    table: IcebergTable,
    compute: Compute,
    inputs: Mapping[str, Input],
    run: Run,
    gone: GonePeople,
    look: Look | None,
    set_out: Callable[[Attempt], Attempt],
    write_id: str,
    plan: ReadPlan,
    log: WriteLog,
    arriving: Sequence[tuple[Any, ...]] | None,
    number: int,
    leaving: "list[DataFrame]",
) -> Outcome:
    suppressed = gone.begin()
    write_refused: Write = _leave_as_it_is if look else partial(write, gone=gone)
    unfiltered = compute
    compute = _with_suppression(table, inputs, compute, suppressed)
    log.begin(write_id)
    name = branch.audit_branch(write_id)
    try:
        attempt, left_out = _fence(engine, table, run, write_id, inputs, plan)
        affected = affected_partitions(engine, table, inputs, attempt.pins)
        frames = read_inputs(engine, inputs, attempt.pins, run, table.name, affected)
        decided = plan_decided(engine, table, inputs, attempt.pins, run, frames)
        attempt = set_out(replace(attempt, decided=decided, leaving=leaving))
        frame = compute(**frames)
        attempt = replace(attempt, table=with_implied_rules(table, frame))
        attempt = replace(attempt, given_rows=_given_rows(attempt, inputs, frames, frame))
        refused = quarantine_left_out(attempt, left_out, write_refused)
        evaluated = evaluate_left_out(attempt, left_out)
        rejected = following(attempt, inputs, compute, unfiltered)
        if isinstance(table.write, Merge):
            outcome = merge_attempt(
                attempt, table.write, frame, number, write_refused, rejected
            )
        else:
            outcome = rows_attempt(attempt, frame, number, write_refused, arriving, rejected)
        outcome = replace(with_left_out(outcome, evaluated, refused), gone_rows=suppressed.rows)
        if isinstance(outcome, Unchanged) and look is None:
            remember_unchanged(attempt)
    except BaseException as error:
        # An interrupted run exits, and the next holder of the lock drops its branch. A dry run
        # drops it here.
        if look is None and not isinstance(error, Exception):
            raise
        # Spark can still be running and create the branch again, so the log keeps a write with
        # an unknown outcome.
        is_dropped = _try_to_drop(engine, table, name)
        if is_dropped and isinstance(error, Exception) and classify(error) is Failure.MOVED:
            log.end(write_id)
        raise
    # The publish is final: the next holder drops a branch that cannot be dropped now.
    if _try_to_drop(engine, table, name):
        log.end(write_id)
    return outcome


def _given_rows(
    attempt: Attempt,
    inputs: Mapping[str, Input],
    frames: "Mapping[str, DataFrame]",
    frame: "DataFrame",
) -> int | None:
    """Return the number of rows if the function returned an input unchanged; None otherwise,
    and for rows of some partitions.
    """
    for name, declared in inputs.items():
        is_unfiltered = declared.mode in ("incremental", "latest") and not declared.by
        if frames.get(name) is frame and is_unfiltered and attempt.run.partitions is None:
            return attempt.pins[name].rows
    return None


def _erase_again(
    engine: Engine, table: IcebergTable, inputs: Mapping[str, Input], gone: GonePeople
) -> None:
    """Erase returned data subjects if the table, its quarantine or an input was rolled back."""
    left_out = gone.begin()
    if not left_out.is_anybody:
        return
    read = dict.fromkeys(declared.table for declared in inputs.values())
    declared_inputs = [gone.tables[name] for name in read if name in gone.tables]
    quarantines = [table.quarantine] if table.quarantine else []
    for concerned in dict.fromkeys((*declared_inputs, table, *quarantines)):
        erase_again(engine, concerned, left_out)


def _with_suppression(
    table: IcebergTable, inputs: Mapping[str, Input], compute: Compute, left_out: LeftOut
) -> Compute:
    """Wrap a function with the suppression filter; unchanged if the list is empty."""
    if inputs or not left_out.is_anybody:
        return left_out.without_gone(inputs, compute)

    def computed() -> "DataFrame":
        frame = compute()
        # Deletes are not filtered.
        unless = DELETED if DELETED in frame.columns else "false"
        return left_out.leave_out(table, frame, unless=unless)

    return computed


def checked(table: IcebergTable, compute: Compute) -> Compute:
    """Wrap a function with a check of its result, and add missing columns to deletes."""

    def computed(**frames: "DataFrame") -> "DataFrame":
        frame = compute(**frames)
        _check_is_frame(table, frame)
        return with_all_columns(table, frame)

    return computed


def _check_is_frame(table: IcebergTable, returned: Any) -> None:
    # Before Spark 4, DataFrames of Spark Connect have another class.
    if not hasattr(returned, "selectExpr"):
        package, kind = type(returned).__module__.partition(".")[0], type(returned).__name__
        if package != "builtins":
            kind = f"{package}.{kind}"
        raise FrameMismatch(
            f"{table.name}: its function returned {'None' if returned is None else f'a {kind}'}; "
            "expected a Spark DataFrame.",
            next_step="Return the DataFrame with the table's rows.",
        )


def _fence(
    engine: Engine,
    table: IcebergTable,
    run: Run,
    write_id: str,
    inputs: Mapping[str, Input],
    plan: ReadPlan,
) -> tuple[Attempt, list[OutsidePartitions]]:
    """Create the branch from the planned snapshot, so that a successful fast-forward proves
    that no other writer published meanwhile.

    :raises FenceLost: if another writer published before the branch was created.
    """
    name = branch.audit_branch(write_id)
    branch.create_branch(engine, table.name, name)
    history = read_history(engine, table.name)
    base, planned = history.head(name), plan.target.main
    assert base is not None
    # The branch of a table without a snapshot starts at a new empty one.
    has_moved = base.snapshot_id != planned.snapshot_id if planned else history.main is not None
    if has_moved:
        raise FenceLost(f"{table.name} was published by another writer during the read plan")
    pins = with_scanned(engine, inputs, plan.pins, run)
    marks = watermarks(table, plan.target, pins, plan.stale, run.partitions)
    marks |= run.read_snapshots
    left_out = find_left_out(engine, table, inputs, pins, run)
    since = read_since(inputs, pins) if run.partitions else {}
    reads_since = any(pin.since_snapshot_id is not None for pin in pins.values())
    attempt = Attempt(
        engine,
        table,
        run,
        write_id,
        base,
        pins,
        watermarks=marks,
        since=since,
        withdrawn=plan.withdrawn,
        left_out=stamped(plan.target, left_out, marks),
        reads_news_alone=bool(since) if run.partitions else reads_since,
    )
    return attempt, left_out


def _unchanged(
    engine: Engine, table: IcebergTable, run: Run, plan: ReadPlan, number: int
) -> Unchanged:
    return Unchanged(
        table.name,
        "",
        plan.target.main.snapshot_id if plan.target.main else None,
        results=tuple(evaluate_age(engine, table, plan.target)),
        pins=plan.pins,
        partitions=run.partition_values,
        attempts=number,
    )


def _try_to_drop(engine: Engine, table: IcebergTable, name: str) -> bool:
    try:
        branch.drop_branch(engine, table.name, name)
    except Exception:
        return False
    return True


def _first_line(error: Exception) -> str:
    return (
        str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
    )
