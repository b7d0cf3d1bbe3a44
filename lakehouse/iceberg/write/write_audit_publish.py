"""The write lifecycle: fence, pin, compute, compare, stage, audit, publish.

Readers of main never see unaudited rows: each write is staged on its own branch, to which main is
moved only after the table's rules were evaluated on the changes.

    write                    lock the table, create or evolve it
      _until_published       plan the read, and retry on conflicts
        _attempt             one attempt, on a new audit branch that is dropped afterwards
          _compute_and_stage
            _fence           create the branch, then pin the inputs
            _compute         read the pinned inputs, and call the table's function
            _stage           split off rejected rows, stage, audit, and publish or block
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from lakehouse.errors import FrameMismatch, WriteConflict
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit import branch
from lakehouse.iceberg.commit.commit_retries import (
    EXECUTOR_LOSS_ATTEMPTS,
    WRITE_ATTEMPTS,
    Failure,
    FenceLost,
    classify,
    first_line,
    pause,
)
from lakehouse.iceberg.commit.lock import WriteLog, table_lock
from lakehouse.iceberg.commit.write_notifications import notifying
from lakehouse.iceberg.erasure.erase_again import erase_again
from lakehouse.iceberg.erasure.suppression_list import (
    NO_SUPPRESSION,
    RowFilter,
    SuppressionList,
)
from lakehouse.iceberg.evolve import planning
from lakehouse.iceberg.metadata.snapshots import History, read_history
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.pinned_frames import read_inputs
from lakehouse.iceberg.read.pinned_inputs import read_since
from lakehouse.iceberg.read.read_plan import ReadPlan, plan_read
from lakehouse.iceberg.read.row_version_inputs import with_version_reads
from lakehouse.iceberg.read.rows_outside_partitions import find_outside_partitions, stamped
from lakehouse.iceberg.read.stale_partitions import affected_partitions, watermarks
from lakehouse.iceberg.rules.evaluation import evaluate_age
from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.values.write_events import BegunWrite
from lakehouse.iceberg.values.write_result import Outcome, Published, Unchanged
from lakehouse.iceberg.write.append_or_overwrite import rows_attempt
from lakehouse.iceberg.write.due_removals import finish_removals
from lakehouse.iceberg.write.kept_rows import KeptRows, keeping_rows
from lakehouse.iceberg.write.merge_rows import merge_attempt
from lakehouse.iceberg.write.prepared_frame import DELETED, with_all_columns, with_implied_rules
from lakehouse.iceberg.write.publish_branch import (
    fast_forward,
    keep_blocked,
    remember_unchanged,
)
from lakehouse.iceberg.write.quarantine_removals import plan_reevaluation
from lakehouse.iceberg.write.quarantine_writes import (
    evaluate_outside_partitions,
    keys_to_remove,
    quarantine_outside_partitions,
    take_out,
    with_outside_partitions,
)
from lakehouse.iceberg.write.row_versions import select_versions
from lakehouse.iceberg.write.withdrawn_rows import compute_withdrawn
from lakehouse.iceberg.write.write_attempt import (
    Attempt,
    Compute,
    Fence,
    WriteRequest,
)
from lakehouse.tables.table import IcebergTable, Merge

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write(
    engine: Engine,
    table: IcebergTable,
    compute: Compute,
    inputs: Mapping[str, Input] | None = None,
    run: Run | None = None,
    *,
    arriving: Sequence[tuple[Any, ...]] | None = None,
    suppression: SuppressionList = NO_SUPPRESSION,
    driver: "Publisher | None" = None,
) -> Outcome:
    """Compute a table and publish the result if its rules pass; creates and evolves the table
    first.

    :param compute: called with the pinned DataFrame of each input by name; called again, with
        fresh pins, after a conflict, and if executors exited with computed rows.
    :param arriving: for an append, the `once_by` values of the DataFrame if the caller knows
        them; saves a scan.
    :param suppression: rows of its data subjects created before their erasure are excluded.
    :param driver: decides what becomes of the staged rows; publishes them by default.
    :returns: `Published`, `Refused` (a blocking rule failed, main is unchanged), or `Unchanged`
        (nothing to commit).
    :raises WriteConflict: if other writers repeatedly published first.
    :raises FrameMismatch: if the DataFrame does not match the declaration.
    :raises EvolutionRefused, PendingChanges: if a user must change the table first.
    """
    declared, run, driver = inputs or {}, run or Run(), driver or Publisher(suppression)
    reads = with_version_reads(table, declared)
    driver.prepare(engine, table, reads)
    with table_lock(engine, table.name) as log, keeping_rows(engine) as kept:
        function = checked(table, compute)
        request = WriteRequest(
            engine,
            table,
            select_versions(table, declared, function, run.partitions, kept.keep),
            reads,
            run,
            suppression,
            kept.keep,
            arriving,
        )
        driver.begin(request, log)
        return _until_published(request, driver, log, kept)


@dataclass(frozen=True)
class Publisher:
    """Publishes the audited candidate of a write; a subclass can show and drop it instead."""

    suppression: SuppressionList = NO_SUPPRESSION
    drops_interrupted: ClassVar[bool] = False
    """Whether an interrupted attempt drops its branch, instead of the next writer."""

    def prepare(self, engine: Engine, table: IcebergTable, inputs: Mapping[str, Input]) -> None:
        """Erase returned data subjects if the table, its quarantine or an input was rolled back."""
        suppressed = self.suppression.filter()
        if not suppressed.is_active:
            return
        read = dict.fromkeys(declared.table for declared in inputs.values())
        declared_inputs = [
            self.suppression.tables[name] for name in read if name in self.suppression.tables
        ]
        quarantines = [table.quarantine] if table.quarantine else []
        for concerned in dict.fromkeys((*declared_inputs, table, *quarantines)):
            erase_again(engine, concerned, suppressed)

    def begin(self, request: WriteRequest, log: WriteLog) -> None:
        """Create and evolve the table and its quarantine, unless an input is missing, and clean up
        after dead writers.

        The quarantine is created at once, so that it can be read before the first rejected row.
        It follows the changes that were applied to its table.
        """
        engine, table, run_id = request.engine, request.table, request.run.run_id
        planning.ensure(engine, table, run_id, before_creation=lambda: _require_inputs(request))
        if table.quarantine:
            with table_lock(engine, table.quarantine.name):
                planning.ensure(engine, table.quarantine, run_id, with_waiting=True)
        branch.drop_abandoned_branches(engine, table.name, log)

    def reporting(self, engine: Engine) -> Engine:
        """Return the engine whose listener receives the events of the write."""
        return engine

    def write_quarantine(
        self, engine: Engine, table: IcebergTable, *args: Any, **kwargs: Any
    ) -> Outcome:
        """Write a quarantine table."""
        return write(engine, table, *args, suppression=self.suppression, **kwargs)

    def publish(self, attempt: Attempt) -> None:
        """Fast-forward main to the branch."""
        fast_forward(attempt)

    def block(self, attempt: Attempt, candidate_id: int) -> str:
        """Retain the branch of a blocked candidate, and return its name; empty if it is dropped."""
        return keep_blocked(attempt, candidate_id)

    def leave_unchanged(self, attempt: Attempt) -> None:
        """Remove rows from the quarantine, and then record how far the inputs were read."""
        keys = keys_to_remove(attempt)
        if keys is not None:
            take_out(attempt.engine, attempt.table, attempt.run.run_id, write, keys)
        remember_unchanged(attempt)

    def remove_from_quarantine(self, request: WriteRequest, history: History) -> None:
        """Apply the recorded removals, also those of a run that was killed after its publish."""
        finish_removals(request.engine, request.table, history, write)


def _require_inputs(request: WriteRequest) -> None:
    """Raise `TableNotFound` if an input does not exist."""
    for declared in request.inputs.values():
        if declared.table != request.table.name:
            read_history(request.engine, declared.table)


@dataclass(frozen=True)
class _Start:
    """The start of an attempt."""

    number: int
    plan: ReadPlan
    write_id: str = field(default_factory=branch.new_write_id)
    removals: "list[DataFrame]" = field(default_factory=list)


def _until_published(
    request: WriteRequest, driver: Publisher, log: WriteLog, kept: KeptRows
) -> Outcome:
    """Retry with fresh pins while other writers publish first."""
    engine, table = request.engine, request.table
    failures: list[Exception] = []
    for number in range(1, WRITE_ATTEMPTS + 1):
        plan = plan_read(engine, table, request.inputs, request.run)
        driver.remove_from_quarantine(request, plan.target)
        if not plan.has_news:
            return _unchanged(request, plan, number)
        start = _Start(number, plan)
        try:
            outcome = _attempt(request, driver, log, start)
        except Exception as error:
            failures.append(error)
            if _is_final(failures):
                raise
            kept.forget()
        else:
            if start.removals and isinstance(outcome, Published):
                driver.remove_from_quarantine(request, read_history(engine, table.name))
            return outcome
        pause(number)
    raise WriteConflict(
        f"{table.name} was not written: other writers came first {WRITE_ATTEMPTS} times, "
        f"last with {first_line(failures[-1])!r}.",
        next_step="Nothing was lost; run this again when the table is less busy.",
    ) from failures[-1]


def _is_final(failures: Sequence[Exception]) -> bool:
    """Whether a retry is useless after some failures, the last of which is new."""
    kinds = [classify(failure) for failure in failures]
    return (
        kinds[-1] is Failure.OTHER
        or kinds.count(Failure.EXECUTORS_LOST) == EXECUTOR_LOSS_ATTEMPTS
    )


def _attempt(request: WriteRequest, driver: Publisher, log: WriteLog, start: _Start) -> Outcome:
    engine = driver.reporting(request.engine)
    begun = BegunWrite(request.table, start.write_id, request.run, start.plan.pins)
    with notifying(engine, begun) as report_outcome:
        with _audit_branch(request, driver, log, start.write_id):
            outcome = _compute_and_stage(request, driver, start)
        report_outcome(outcome)
    return outcome


@contextmanager
def _audit_branch(
    request: WriteRequest, driver: Publisher, log: WriteLog, write_id: str
) -> Iterator[None]:
    """Drop the branch of an attempt after it, and log the attempt until the branch is dropped."""
    log.begin(write_id)
    name = branch.audit_branch(write_id)
    try:
        yield
    except BaseException as error:
        # The next holder of the lock drops the branch of an interrupted run.
        if not isinstance(error, Exception) and not driver.drops_interrupted:
            raise
        # Spark can still be running and create the branch again, so the log keeps a write with
        # an unknown outcome.
        is_dropped = _try_to_drop(request, name)
        if is_dropped and isinstance(error, Exception) and classify(error) is Failure.MOVED:
            log.end(write_id)
        raise
    # The publish is final: the next holder drops a branch that cannot be dropped now.
    if _try_to_drop(request, name):
        log.end(write_id)


def _compute_and_stage(request: WriteRequest, driver: Publisher, start: _Start) -> Outcome:
    fence = _fence(request, start)
    suppressed = request.suppression.filter()
    compute = _with_suppression(request.table, request.inputs, request.compute, suppressed)
    attempt, frame = _compute(request, driver, start, fence, compute)
    outcome = replace(_stage(attempt, frame, compute), suppressed_rows=suppressed.rows)
    if isinstance(outcome, Unchanged):
        driver.leave_unchanged(attempt)
    return outcome


def _fence(request: WriteRequest, start: _Start) -> Fence:
    """Create the branch from the planned snapshot, so that a successful fast-forward proves
    that no other writer published meanwhile, and pin the inputs.

    :raises FenceLost: if another writer published before the branch was created.
    """
    engine, table, run, plan = request.engine, request.table, request.run, start.plan
    name = branch.audit_branch(start.write_id)
    branch.create_branch(engine, table.name, name)
    history = read_history(engine, table.name)
    base, planned = history.head(name), plan.target.main
    assert base is not None
    # The branch of a table without a snapshot starts at a new empty one.
    has_moved = base.snapshot_id != planned.snapshot_id if planned else history.main is not None
    if has_moved:
        raise FenceLost(f"{table.name} was published by another writer during the read plan")
    pins = plan.pins
    marks = watermarks(table, plan.target, pins, plan.stale, run.partitions)
    marks |= run.read_snapshots
    outside = find_outside_partitions(engine, table, request.inputs, pins, run)
    since = read_since(request.inputs, pins) if run.partitions else {}
    reads_since = any(pin.since_snapshot_id is not None for pin in pins.values())
    return Fence(
        base,
        pins,
        watermarks=marks,
        since=since,
        withdrawn=plan.withdrawn,
        outside=outside,
        outside_values=stamped(plan.target, outside, marks),
        is_incremental=bool(since) if run.partitions else reads_since,
    )


def _compute(
    request: WriteRequest, driver: Publisher, start: _Start, fence: Fence, compute: Compute
) -> "tuple[Attempt, DataFrame]":
    """Read the pinned inputs, and return the rows that the table's function computes."""
    engine, table, inputs, run = request.engine, request.table, request.inputs, request.run
    affected = affected_partitions(engine, table, inputs, fence.pins)
    frames = read_inputs(engine, inputs, fence.pins, run, table.name, affected)
    scope = plan_reevaluation(engine, table, inputs, fence.pins, run, frames)
    frame = compute(**frames)
    attempt = Attempt(
        request,
        driver,
        start.write_id,
        start.number,
        fence,
        with_implied_rules(table, frame),
        scope,
        start.removals,
    )
    return attempt, frame


def _stage(attempt: Attempt, frame: "DataFrame", compute: Compute) -> Outcome:
    """Quarantine rejected rows, stage and audit the others, and publish or block them."""
    quarantined = quarantine_outside_partitions(attempt)
    evaluated = evaluate_outside_partitions(attempt)
    withdrawn = compute_withdrawn(attempt, compute)
    mode = attempt.table.write
    if isinstance(mode, Merge):
        outcome = merge_attempt(attempt, mode, frame, withdrawn)
    else:
        outcome = rows_attempt(attempt, frame, withdrawn)
    return with_outside_partitions(outcome, evaluated, quarantined)


def _with_suppression(
    table: IcebergTable, inputs: Mapping[str, Input], compute: Compute, suppressed: RowFilter
) -> Compute:
    """Wrap a function with the suppression filter; unchanged if the list is empty."""
    if inputs or not suppressed.is_active:
        return suppressed.wrap(inputs, compute)

    def computed() -> "DataFrame":
        frame = compute()
        # Deletes are not filtered.
        unless = DELETED if DELETED in frame.columns else "false"
        return suppressed.exclude(table, frame, unless=unless)

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


def _unchanged(request: WriteRequest, plan: ReadPlan, number: int) -> Unchanged:
    main = plan.target.main
    return Unchanged(
        request.table.name,
        "",
        main.snapshot_id if main else None,
        results=tuple(evaluate_age(request.engine, request.table, plan.target)),
        pins=plan.pins,
        partitions=request.run.partition_values,
        attempts=number,
    )


def _try_to_drop(request: WriteRequest, name: str) -> bool:
    try:
        branch.drop_branch(request.engine, request.table.name, name)
    except Exception:
        return False
    return True
