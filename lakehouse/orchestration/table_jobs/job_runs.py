"""Starts an AWS job with Dagster Pipes and waits for it; messages go through the bucket."""

import logging
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import dagster as dg
from botocore.exceptions import BotoCoreError
from dagster_aws.pipes import PipesS3ContextInjector, PipesS3MessageReader

from lakehouse.orchestration.table_jobs.job_code import RUNS
from lakehouse.orchestration.table_jobs.job_script import CODE_ARGUMENT
from lakehouse.orchestration.table_jobs.job_services import JobService, JobState

if TYPE_CHECKING:
    from lakehouse.storage.s3 import S3ObjectStore

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
