"""A table that is computed in a job of AWS: it is asked for, waited for under the table's lock, and
its outcome is what this process would have had.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import dagster as dg

from lakehouse.errors import JobFailed, LakehouseError
from lakehouse.iceberg.commit.lock import WriteLog, table_lock
from lakehouse.iceberg.commit.told_writes import published_by_run
from lakehouse.iceberg.erasure.gone_people import GonePeople
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.write_context import Run
from lakehouse.iceberg.metadata.write_events import BegunWrite
from lakehouse.iceberg.metadata.write_result import Outcome, Refused, RuleResult
from lakehouse.iceberg.read.rows_outside_partitions import has_partition
from lakehouse.iceberg.write.merge_rows import merge_key_rule
from lakehouse.orchestration.asset_checks import checked_rules
from lakehouse.orchestration.run_failures.withheld_values import cause_without_data
from lakehouse.orchestration.table_jobs.job_answer import (
    answered_all_rows,
    answered_error,
    answered_outcome,
    begun_writes,
)
from lakehouse.orchestration.table_jobs.job_code import publish_code
from lakehouse.orchestration.table_jobs.job_request import JobRequest
from lakehouse.orchestration.whole_looks import need_whole_look
from lakehouse.settings import Settings, TableJob
from lakehouse.tables.rule import Rule
from lakehouse.tables.table import IcebergTable, Merge

if TYPE_CHECKING:
    from lakehouse.orchestration.table_jobs.job_runs import JobRun


@dataclass(frozen=True)
class JobResult:
    """What came of a table in a job, and what there is to show of the job."""

    outcome: Outcome
    metadata: Mapping[str, Any]
    all_rows: Sequence[RuleResult]
    """What all rows tell of rules that failed last, and hold for what was written."""
    is_interrupted: bool = False
    """Whether the run is to end once this is recorded."""


def compute_in_job(
    context: dg.AssetExecutionContext,
    settings: Settings,
    engine: Engine,
    gone: GonePeople,
    table: IcebergTable,
    run: Run,
    job: TableJob,
    implied: Collection[Rule] = (),
) -> JobResult:
    """Let a job compute and publish a table; this process starts no Spark.

    :param implied: rules that follow from what the table is computed from.
    :raises JobFailed: when the job ends and did not say what came of the table.
    :raises LakehouseError: what the job ended with, as if it had been raised here.
    :raises DagsterExecutionInterruptedError: when the run was interrupted, and the job did not
        publish.
    """
    # Importing it takes a second, which who computes here can do without.
    from lakehouse.orchestration.table_jobs.job_runs import run_job
    from lakehouse.storage.s3 import open_bucket

    store = open_bucket(settings)
    code_url = publish_code(settings, store)
    with ExitStack() as locks:
        # A job shares no host with other writers: they wait for this process instead.
        logs = {name: locks.enter_context(table_lock(engine, name)) for name in _written(table)}
        dead = {name: log.dead() for name, log in logs.items()}
        failed = need_whole_look(context.instance, table, [rule.name for rule in table.rules])
        request = JobRequest.of(table.name, run, settings, engine, gone.read(), dead, failed)
        look = _NoteWrites(logs)
        ended = run_job(context, settings, store, job, request, code_url, look)
    outcome = answered_outcome(ended.messages, told_of(table, implied))
    if ended.is_interrupted and (outcome is None or isinstance(outcome, Refused)):
        # What is refused is refused again, by a run that tells why.
        raise dg.DagsterExecutionInterruptedError
    if outcome is None:
        raise _error_of(ended, engine, table, run, job) from ended.failure
    if ended.is_interrupted:
        context.log.warning(f"{table.name} was computed; its run was interrupted after that.")
    elif ended.failure:
        context.log.warning(f"{table.name} was computed; its job failed after that.")
    _tell(engine, table, run, outcome)
    all_rows = answered_all_rows(ended.messages, table.rules)
    return JobResult(outcome, ended.metadata or {}, all_rows, ended.is_interrupted)


def told_of(table: IcebergTable, implied: Collection[Rule]) -> Iterator[Rule]:
    """Yield the rules whose results a write of a table may tell."""
    yield from (*checked_rules(table), *implied, has_partition(table))
    if isinstance(table.write, Merge):
        yield merge_key_rule(table, table.write)


@dataclass(frozen=True)
class _NoteWrites:
    """Notes on this host the writes that a job begins, so that whoever holds the lock next drops
    their branches: what a stopped job left, and what one works on that is not known to have
    ended, which then begins again on the table as it is.
    """

    logs: Mapping[str, WriteLog]
    noted: set[tuple[str, str]] = field(default_factory=set)

    def __call__(self, messages: Sequence[Any]) -> None:
        for table, write_id in begun_writes(messages):
            if table in self.logs and (table, write_id) not in self.noted:
                self.logs[table].begin(write_id)
                self.noted.add((table, write_id))


def _written(table: IcebergTable) -> list[str]:
    return [table.name, *([table.quarantine.name] if table.quarantine else [])]


def _error_of(
    ended: "JobRun", engine: Engine, table: IcebergTable, run: Run, job: TableJob
) -> LakehouseError:
    """Return the error of a job that told no outcome; with the text of the service, which holds no
    rows: what a job says of an error goes through its messages.

    It may have published its table all the same, which the table tells.
    """
    told = answered_error(ended.messages)
    if told:
        return told
    what = f"the job {job.service}:{job.name}"
    found = "ended, and did not say what came of it"
    if ended.failure:
        found = f"failed: {' '.join(str(ended.failure).split()).rstrip('.')}"
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
        _tell(engine, table, run, published)
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
    """Return the command that computes what a run did, also where nothing of it is stale."""
    keys = run.partition_values
    if not keys:
        return f"lakehouse retry {table.name}"
    return f"lakehouse backfill {table.name} --from {keys[0]} --to {keys[-1]}"


def _tell(engine: Engine, table: IcebergTable, run: Run, outcome: Outcome) -> None:
    """Tell the listener of the write, which the job cannot reach."""
    if outcome.write_id:
        write = BegunWrite(table, outcome.write_id, run, outcome.pins)
        engine.listener.begun(write)
        engine.listener.ended(write, outcome)
