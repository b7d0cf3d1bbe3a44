"""Computes a table in an AWS job: starts it and waits for it under the table lock."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import dagster as dg

from lakehouse.errors import JobFailed, LakehouseError
from lakehouse.iceberg.commit.lock import WriteLog, table_lock
from lakehouse.iceberg.commit.write_notifications import published_by_run
from lakehouse.iceberg.erasure.suppression_list import SuppressionList
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.write_context import Run
from lakehouse.iceberg.metadata.write_events import BegunWrite
from lakehouse.iceberg.metadata.write_result import Outcome, Refused, RuleResult
from lakehouse.iceberg.read.rows_outside_partitions import has_partition
from lakehouse.iceberg.write.merge_rows import merge_key_rule
from lakehouse.orchestration.asset_checks import checked_rules
from lakehouse.orchestration.full_checks import need_full_check
from lakehouse.orchestration.run_failures.withheld_values import cause_without_data
from lakehouse.orchestration.table_jobs.job_answer import (
    answered_all_rows,
    answered_error,
    answered_outcome,
    begun_writes,
)
from lakehouse.orchestration.table_jobs.job_code import publish_code
from lakehouse.orchestration.table_jobs.job_request import JobRequest
from lakehouse.settings import Settings, TableJob
from lakehouse.tables.rule import Rule
from lakehouse.tables.table import IcebergTable, Merge

if TYPE_CHECKING:
    from lakehouse.orchestration.table_jobs.job_runs import JobRun


@dataclass(frozen=True)
class JobResult:
    """Outcome of a table in a job, and metadata of the job."""

    outcome: Outcome
    metadata: Mapping[str, Any]
    all_rows: Sequence[RuleResult]
    """Results on all rows of rules that failed last and pass for the new rows."""
    is_interrupted: bool = False
    """Whether the run must end once the result is recorded."""


def compute_in_job(
    context: dg.AssetExecutionContext,
    settings: Settings,
    engine: Engine,
    gone: SuppressionList,
    table: IcebergTable,
    run: Run,
    job: TableJob,
    implied: Collection[Rule] = (),
) -> JobResult:
    """Compute and publish a table in a job, without Spark in this process.

    :param implied: rules that follow from the inputs.
    :raises JobFailed: the job finished without an outcome.
    :raises LakehouseError: the error of the job.
    :raises DagsterExecutionInterruptedError: interrupted before the job published.
    """
    # The import takes a second; skip it for tables that are computed locally.
    from lakehouse.orchestration.table_jobs.job_runs import run_job
    from lakehouse.storage.s3 import open_bucket

    store = open_bucket(settings)
    code_url = publish_code(settings, store)
    with ExitStack() as locks:
        # The job runs on another host: this process keeps the locks for it.
        logs = {name: locks.enter_context(table_lock(engine, name)) for name in _written(table)}
        unfinished = {name: log.unfinished() for name, log in logs.items()}
        failed = need_full_check(context.instance, table, [rule.name for rule in table.rules])
        request = JobRequest.of(
            table.name, run, settings, engine, gone.read(), unfinished, failed
        )
        look = _NoteWrites(logs)
        job_run = run_job(context, settings, store, job, request, code_url, look)
    outcome = answered_outcome(job_run.messages, reported_rules(table, implied))
    if job_run.is_interrupted and (outcome is None or isinstance(outcome, Refused)):
        # A rerun reports the same rejection.
        raise dg.DagsterExecutionInterruptedError
    if outcome is None:
        raise _error_of(job_run, engine, table, run, job) from job_run.failure
    if job_run.is_interrupted:
        context.log.warning(f"{table.name} was computed; its run was interrupted after that.")
    elif job_run.failure:
        context.log.warning(f"{table.name} was computed; its job failed after that.")
    _notify(engine, table, run, outcome)
    all_rows = answered_all_rows(job_run.messages, table.rules)
    return JobResult(outcome, job_run.metadata or {}, all_rows, job_run.is_interrupted)


def reported_rules(table: IcebergTable, implied: Collection[Rule]) -> Iterator[Rule]:
    """Yield the rules whose results a write of a table can contain."""
    yield from (*checked_rules(table), *implied, has_partition(table))
    if isinstance(table.write, Merge):
        yield merge_key_rule(table, table.write)


@dataclass(frozen=True)
class _NoteWrites:
    """Records the job's started writes in the write logs of this host.

    The next lock owner drops the branches of recorded writes: those that a stopped job left,
    and those of a job that may still run, which then restarts from the current table.
    """

    logs: Mapping[str, WriteLog]
    recorded: set[tuple[str, str]] = field(default_factory=set)

    def __call__(self, messages: Sequence[Any]) -> None:
        for table, write_id in begun_writes(messages):
            if table in self.logs and (table, write_id) not in self.recorded:
                self.logs[table].begin(write_id)
                self.recorded.add((table, write_id))


def _written(table: IcebergTable) -> list[str]:
    return [table.name, *([table.quarantine.name] if table.quarantine else [])]


def _error_of(
    job_run: "JobRun", engine: Engine, table: IcebergTable, run: Run, job: TableJob
) -> LakehouseError:
    """Return the error of a job without an outcome, with the text of the AWS service.

    That text contains no rows: the job's own errors arrive as messages. The job can still have
    published its table; the table metadata shows it.
    """
    error = answered_error(job_run.messages)
    if error:
        return error
    what = f"the job {job.service}:{job.name}"
    found = "ended, and did not say what came of it"
    if job_run.failure:
        found = f"failed: {' '.join(str(job_run.failure).split()).rstrip('.')}"
    try:
        published = published_by_run(engine, table.name, run.run_id)
    except Exception as error:
        return JobFailed(
            f"Whether {table.name} was computed is not known: {what} {found}; and its table cannot"
            f" be looked at: {cause_without_data(error)}.",
            next_step="Once it can be, `lakehouse history` shows it, and `lakehouse retry`"
            " computes it.",
        )
    if published:
        _notify(engine, table, run, published)
        return JobFailed(
            f"{table.name} was published as snapshot {published.snapshot_id}, and what its rules"
            f" found is not known: {what} {found}.",
            next_step=f"`{_again(table, run)}` computes it once more, with its checks; what follows"
            " from it is computed without that.",
        )
    return JobFailed(
        f"{table.name} was not computed: {what} {found}; expected it to run the script of the"
        " lakehouse.",
        next_step="Look at the job's own log, and at its definition; docs/glue.md has one.",
    )


def _again(table: IcebergTable, run: Run) -> str:
    """Return the command that repeats a run even if nothing is stale."""
    keys = run.partition_values
    if not keys:
        return f"lakehouse retry {table.name}"
    return f"lakehouse backfill {table.name} --from {keys[0]} --to {keys[-1]}"


def _notify(engine: Engine, table: IcebergTable, run: Run, outcome: Outcome) -> None:
    """Notify the write listener, which the job cannot reach."""
    if outcome.write_id:
        write = BegunWrite(table, outcome.write_id, run, outcome.pins)
        engine.listener.begun(write)
        engine.listener.finished(write, outcome)
