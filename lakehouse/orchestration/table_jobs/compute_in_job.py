"""Computes a table in an AWS job: starts it and waits for it under the table lock."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import dagster as dg

from lakehouse.errors import JobFailed, LakehouseError
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.read.rows_outside_partitions import has_partition
from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.values.write_events import BegunWrite
from lakehouse.iceberg.values.write_result import Outcome
from lakehouse.iceberg.write.merge_rows import merge_key_rule
from lakehouse.orchestration.asset_checks import checked_rules
from lakehouse.orchestration.table_jobs.job_answer import answered_error, answered_outcome
from lakehouse.orchestration.table_jobs.job_code import publish_code
from lakehouse.orchestration.table_jobs.job_request import JobRequest
from lakehouse.settings import Settings, TableJob
from lakehouse.tables.rule import Rule
from lakehouse.tables.table import IcebergTable, Merge

if TYPE_CHECKING:
    from lakehouse.orchestration.table_jobs.job_runs import JobRun


def compute_in_job(
    context: dg.AssetExecutionContext,
    settings: Settings,
    table: IcebergTable,
    run: Run,
    job: TableJob,
    implied: Collection[Rule] = (),
) -> tuple[Outcome, Mapping[str, Any]]:
    """Compute and publish a table in a job, without Spark in this process.

    :param implied: rules that follow from the inputs.
    :returns: the outcome, and metadata of the job.
    :raises JobFailed: the job finished without an outcome.
    :raises LakehouseError: the error of the job.
    :raises DagsterExecutionInterruptedError: interrupted; the job was stopped.
    """
    # The import takes a second; skip it for tables that are computed locally.
    from lakehouse.orchestration.table_jobs.job_runs import run_job
    from lakehouse.storage.s3 import open_bucket

    io = context.resources.io_manager
    store = open_bucket(settings)
    code_url = publish_code(settings, store)
    with ExitStack() as locks:
        # The job runs on another host: this process keeps the locks for it.
        for name in (table.name, *([table.quarantine.name] if table.quarantine else [])):
            locks.enter_context(table_lock(io.engine, name))
        request = JobRequest.of(table.name, run, settings, io.engine, io.suppression.read())
        job_run = run_job(context, settings, store, job.name, request.to_json(), code_url)
    outcome = answered_outcome(job_run.messages, reported_rules(table, implied))
    if outcome is None:
        raise _error_of(job_run, table, job) from job_run.failure
    if job_run.failure:
        context.log.warning(f"{table.name} was computed; its job failed after that.")
    if outcome.write_id:
        # The job cannot reach the listener.
        write = BegunWrite(table, outcome.write_id, run, outcome.pins)
        io.engine.listener.begun(write)
        io.engine.listener.finished(write, outcome)
    return outcome, job_run.metadata or {}


def reported_rules(table: IcebergTable, implied: Collection[Rule]) -> Iterator[Rule]:
    """Yield the rules whose results a write of a table can contain."""
    yield from (*checked_rules(table), *implied, has_partition(table))
    if isinstance(table.write, Merge):
        yield merge_key_rule(table, table.write)


def _error_of(job_run: "JobRun", table: IcebergTable, job: TableJob) -> LakehouseError:
    """Return the error of a job without an outcome, with the text of the AWS service.

    That text contains no rows: the job's own errors arrive as messages.
    """
    error = answered_error(job_run.messages)
    if error:
        return error
    end = "ended without a result"
    if job_run.failure:
        end = f"failed: {' '.join(str(job_run.failure).split()).rstrip('.')}"
    return JobFailed(
        f"The job glue:{job.name} of {table.name} {end}; expected it to run the script"
        " of the lakehouse and to report the outcome.",
        next_step="Look at the job's own log, and at its definition; docs/glue.md has one."
        f" `lakehouse history {table.name}` shows whether it published.",
    )
