"""Computes a table in an AWS job: starts it and waits for it under the table lock.

Entry script of an AWS job: downloads and unpacks the code, then computes the table.

It is a separate object in the bucket and cannot import the lakehouse before that.
"""

import logging
import secrets
import sys
import tempfile
import time
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import dagster as dg
from botocore.exceptions import BotoCoreError
from dagster_aws.pipes import PipesS3ContextInjector, PipesS3MessageReader

from lakehouse.errors import JobFailed, LakehouseError
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.read.rows_outside_partitions import has_partition
from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.values.write_events import BegunWrite
from lakehouse.iceberg.values.write_result import Outcome, Refused
from lakehouse.iceberg.write.merge_rows import merge_key_rule
from lakehouse.orchestration.asset_checks import checked_rules
from lakehouse.orchestration.table_jobs.job_answer import answered_error, answered_outcome
from lakehouse.orchestration.table_jobs.job_code import RUNS, publish_code
from lakehouse.orchestration.table_jobs.job_request import JobRequest
from lakehouse.orchestration.table_jobs.job_services import JobService, JobState
from lakehouse.settings import Settings, TableJob
from lakehouse.tables.rule import Rule
from lakehouse.tables.table import IcebergTable, Merge

if TYPE_CHECKING:
    from lakehouse.storage.s3 import S3ObjectStore


CODE_ARGUMENT = "--lakehouse-code"


def fetch_code(url: str) -> Path:
    """Download an archive from the bucket and return its path."""
    import boto3

    place = urlsplit(url)
    file = Path(tempfile.mkdtemp(prefix="lakehouse-")) / "code.zip"
    boto3.client("s3").download_file(place.netloc, place.path[1:], str(file))
    return file


def unpack(archive: Path) -> Path:
    """Unpack an archive into a folder of the same name, and return the folder."""
    folder = archive.with_suffix("")
    with zipfile.ZipFile(archive) as content:
        content.extractall(folder)
    return folder


if __name__ == "__main__":
    code = fetch_code(sys.argv[sys.argv.index(CODE_ARGUMENT) + 1])
    sys.path.insert(0, str(unpack(code)))
    # Every AWS service treats a script without an exit code as successful.
    if status := import_module("lakehouse.table_job").main(code):
        sys.exit(status)


_KEPT_FOR = timedelta(days=7)
"""Maximum duration of a Glue job."""
_MESSAGES_SECONDS = 2.0
_POLL_SECONDS = 5.0
_UNKNOWN_SECONDS = 3600.0
"""Time without a known state until a run is given up."""
_INTERRUPTS = (dg.DagsterExecutionInterruptedError, KeyboardInterrupt)


@dataclass
class JobRun:
    """A job run: its messages, its metadata for Dagster, and its failure."""

    messages: Sequence[Any] = ()
    metadata: Mapping[str, Any] | None = None
    failure: Exception | None = None
    is_interrupted: bool = False
    """Whether the waiting run must end; the job can have published before."""


class _Messages(PipesS3MessageReader):
    def __init__(self, store: "S3ObjectStore", folder: str) -> None:
        super().__init__(bucket=store.bucket, client=store.client, interval=_MESSAGES_SECONDS)
        self._folder = folder

    @property
    def expected_writer_count(self) -> int:
        """One job; Dagster's default implementation warns about a preview in each run."""
        return 1

    def messages_are_readable(self, params: Any) -> bool:
        """Whether a message exists; False during a network error, which would stop the reader."""
        try:
            return bool(super().messages_are_readable(params))
        except BotoCoreError:
            return False

    def download_messages_chunk(self, index: int, params: Any) -> str | None:
        """Return messages; None during a network error."""
        try:
            return super().download_messages_chunk(index, params)
        except BotoCoreError:
            return None

    @contextmanager
    def get_params(self) -> Iterator[Any]:
        """Yield the message folder of the job."""
        with super().get_params() as params:
            yield {**params, "key_prefix": f"{self._folder}messages"}


def run_job(
    context: dg.AssetExecutionContext,
    store: "S3ObjectStore",
    service: JobService,
    request: Mapping[str, Any],
    code_url: str,
) -> JobRun:
    """Run a job to its end and return its messages; its failure is part of the result.

    The first interrupt stops the job and waits for its end.

    :param request: see `JobRequest`.
    :raises DagsterExecutionInterruptedError: a second interrupt; the job can continue.
    """
    _remove_old(store)
    folder = f"{RUNS}{secrets.token_hex(8)}/"
    injector = PipesS3ContextInjector(
        bucket=store.bucket, client=store.client, key_prefix=folder
    )
    job_run = JobRun()
    session: dg.PipesSession | None = None
    run_id, state = "", None
    try:
        with dg.open_pipes_session(
            context, injector, _Messages(store, folder), extras={**request}
        ) as session:
            arguments = {CODE_ARGUMENT: code_url, **session.get_bootstrap_cli_arguments()}
            run_id = service.start(arguments, str(request["table"]))
            context.log.info(f"AWS runs the job as {run_id}.")
            job_run.metadata = service.metadata(run_id)
            state = _wait(service, run_id, context.log, job_run)
        job_run.failure = _failure(run_id, state)
    except Exception as error:
        job_run.failure = error
    except _INTERRUPTS:
        if state is None:
            raise
        # The job has ended, and only its last messages were awaited.
        job_run.is_interrupted = True
    finally:
        _remove(store, folder, context.log)
    job_run.messages = session.get_custom_messages() if session else ()
    return job_run


def _wait(
    service: JobService, run_id: str, log: logging.Logger, job_run: JobRun
) -> JobState | None:
    """Return the final state of a run; None if it is unknown for an hour."""
    try:
        return _poll(service, run_id, log, is_stopping=False)
    except _INTERRUPTS:
        job_run.is_interrupted = True
    log.warning(f"{run_id} is stopped, and its end is awaited; another interrupt gives up.")
    try:
        return _poll(service, run_id, log, is_stopping=True)
    except _INTERRUPTS:
        log.warning(f"{run_id} is not awaited any longer and can continue: stop it in AWS.")
        raise


def _poll(
    service: JobService, run_id: str, log: logging.Logger, *, is_stopping: bool
) -> JobState | None:
    known_at = time.monotonic()
    is_stop_requested = is_outage_reported = False
    while True:
        try:
            state = service.state(run_id)
            if state.is_finished:
                return state
            known_at = time.monotonic()
            if is_stopping and not is_stop_requested:
                service.stop(run_id)
                is_stop_requested = True
        except Exception as error:
            # Network or AWS outage: the run continues, and so does the lock of its table.
            if not is_outage_reported:
                log.warning(f"AWS did not answer about {run_id}, which is retried: {error}")
            is_outage_reported = True
        if time.monotonic() - known_at > _UNKNOWN_SECONDS:
            return None
        time.sleep(_POLL_SECONDS)


def _failure(run_id: str, state: JobState | None) -> Exception | None:
    if state is None:
        return RuntimeError(f"the state of the run {run_id} is unknown, and it can continue")
    if state.has_succeeded:
        return None
    reason = f": {state.reason}" if state.reason else ""
    return RuntimeError(f"the run {run_id} ended as {state.name}{reason}")


def _remove(store: "S3ObjectStore", folder: str, log: logging.Logger) -> None:
    """Delete the request and the messages, which contain keys, with all object versions.

    A job that starts after this finds no request and exits, also one whose start was not answered.
    """
    try:
        store.remove_folder(folder)
    except Exception as error:
        # The result of the table is more important.
        log.warning(
            f"{store.uri(folder)} was not removed; an erasure or a later run does: {error}"
        )


def _remove_old(store: "S3ObjectStore") -> None:
    """Delete the folders of killed runs."""
    oldest = datetime.now(UTC) - _KEPT_FOR
    versions = store.all_versions(RUNS)
    store.remove_versions([version for version in versions if version.modified_at < oldest])


@dataclass(frozen=True)
class JobResult:
    """Outcome of a table in a job, and metadata of the job."""

    outcome: Outcome
    metadata: Mapping[str, Any]
    is_interrupted: bool = False
    """Whether the run must end once the result is recorded."""


def compute_in_job(
    context: dg.AssetExecutionContext,
    settings: Settings,
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
    from lakehouse.orchestration.table_jobs.job_services import service_of
    from lakehouse.storage.s3 import open_bucket

    io = context.resources.io_manager
    store, service = open_bucket(settings), service_of(settings, job)
    code_url = publish_code(settings, store)
    with ExitStack() as locks:
        # The job runs on another host: this process keeps the locks for it.
        for name in (table.name, *([table.quarantine.name] if table.quarantine else [])):
            locks.enter_context(table_lock(io.engine, name))
        request = JobRequest.of(table.name, run, settings, io.engine, io.gone.read())
        job_run = run_job(context, store, service, request.to_json(), code_url)
    outcome = answered_outcome(job_run.messages, reported_rules(table, implied))
    if job_run.is_interrupted and (outcome is None or isinstance(outcome, Refused)):
        # A rerun reports the same rejection.
        raise dg.DagsterExecutionInterruptedError
    if outcome is None:
        raise _error_of(job_run, table, job) from job_run.failure
    if job_run.is_interrupted:
        context.log.warning(f"{table.name} was computed; its run was interrupted after that.")
    elif job_run.failure:
        context.log.warning(f"{table.name} was computed; its job failed after that.")
    if outcome.write_id:
        # The job cannot reach the listener.
        write = BegunWrite(table, outcome.write_id, run, outcome.pins)
        io.engine.listener.begun(write)
        io.engine.listener.finished(write, outcome)
    return JobResult(outcome, job_run.metadata or {}, job_run.is_interrupted)


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
        f"The job {job.service}:{job.name} of {table.name} {end}; expected it to run the script"
        " of the lakehouse and to report the outcome.",
        next_step="Look at the job's own log, and at its definition; docs/glue.md has one."
        f" `lakehouse history {table.name}` shows whether it published.",
    )
