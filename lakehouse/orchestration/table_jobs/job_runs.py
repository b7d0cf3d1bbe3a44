"""Starts an AWS Glue job with Dagster Pipes and waits for it; messages go through the bucket."""

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
from lakehouse.settings import Settings

if TYPE_CHECKING:
    from lakehouse.storage.s3 import S3ObjectStore

_KEPT_FOR = timedelta(days=7)
"""Maximum duration of a Glue job."""
_MESSAGES_SECONDS = 2.0
_POLL_SECONDS = 5.0
_UNKNOWN_SECONDS = 3600.0
"""Time without a known state until a run is given up."""
_FINAL_STATES = {"SUCCEEDED", "FAILED", "STOPPED", "TIMEOUT", "ERROR", "EXPIRED"}


@dataclass
class JobRun:
    """A job run: its messages, its metadata for Dagster, and its failure."""

    messages: Sequence[Any] = ()
    metadata: Mapping[str, Any] | None = None
    failure: Exception | None = None


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
    settings: Settings,
    store: "S3ObjectStore",
    job_name: str,
    request: Mapping[str, Any],
    code_url: str,
) -> JobRun:
    """Run a job to its end and return its messages; its failure is part of the result.

    The first interrupt stops the job and waits for its end.

    :param request: see `JobRequest`.
    :raises DagsterExecutionInterruptedError: interrupted; after a second interrupt, the job can
        continue.
    """
    _remove_old(store)
    folder = f"{RUNS}{secrets.token_hex(8)}/"
    injector = PipesS3ContextInjector(
        bucket=store.bucket, client=store.client, key_prefix=folder
    )
    client, job_run = glue_client(settings), JobRun()
    session: dg.PipesSession | None = None
    try:
        with dg.open_pipes_session(
            context, injector, _Messages(store, folder), extras={**request}
        ) as session:
            arguments = {CODE_ARGUMENT: code_url, **session.get_bootstrap_cli_arguments()}
            started = client.start_job_run(JobName=job_name, Arguments=arguments)
            run_id = str(started["JobRunId"])
            context.log.info(f"AWS runs the job as {run_id}.")
            job_run.metadata = _metadata(client, job_name, run_id)
            job_run.failure = wait_for_end(client, job_name, run_id, context.log)
    except Exception as error:
        job_run.failure = error
    finally:
        _remove(store, folder, context.log)
    job_run.messages = session.get_custom_messages() if session else ()
    return job_run


def glue_client(settings: Settings) -> Any:
    """Return a Glue client for the configured region.

    It repeats no request: a repeated start could run a job twice, and the caller repeats others.
    """
    import boto3
    from botocore.config import Config

    return boto3.client(
        "glue",
        region_name=settings.region,
        endpoint_url=settings.endpoint_url,
        config=Config(retries={"total_max_attempts": 1}),
    )


def _metadata(client: Any, job_name: str, run_id: str) -> dict[str, Any]:
    """Return the run id, the job name, and the console URL."""
    region = client.meta.region_name
    url = (
        f"https://{region}.console.aws.amazon.com/gluestudio/home?region={region}"
        f"#/job/{job_name}/run/{run_id}"
    )
    return {
        "AWS Glue Job Run ID": run_id,
        "AWS Glue Job Name": job_name,
        "AWS Glue Job Run URL": dg.MetadataValue.url(url),
    }


def wait_for_end(
    client: Any, job_name: str, run_id: str, log: logging.Logger
) -> Exception | None:
    """Wait for the end of a run and return its failure; an interrupt stops the run first."""
    try:
        return _poll(client, job_name, run_id, log)
    except (dg.DagsterExecutionInterruptedError, KeyboardInterrupt):
        log.warning(f"{run_id} is stopped, and its end is awaited; another interrupt gives up.")
        _poll(client, job_name, run_id, log, is_stopping=True)
        raise


def _poll(
    client: Any, job_name: str, run_id: str, log: logging.Logger, *, is_stopping: bool = False
) -> Exception | None:
    answered_at = time.monotonic()
    is_outage_reported = False
    while time.monotonic() - answered_at < _UNKNOWN_SECONDS:
        try:
            run = client.get_job_run(JobName=job_name, RunId=run_id)["JobRun"]
            if run["JobRunState"] in _FINAL_STATES:
                return _failure(run_id, run)
            answered_at = time.monotonic()
            if is_stopping:
                # Repeated until the end, since a request can be denied, such as by a rate limit.
                client.batch_stop_job_run(JobName=job_name, JobRunIds=[run_id])
        except Exception as error:
            # Network or AWS outage: the run continues, and so does the lock of its table.
            if not is_outage_reported:
                log.warning(f"AWS did not answer about {run_id}, which is retried: {error}")
            is_outage_reported = True
        time.sleep(_POLL_SECONDS)
    return RuntimeError(f"the state of the run {run_id} is unknown, and it can continue")


def _failure(run_id: str, run: Mapping[str, Any]) -> Exception | None:
    state, reason = run["JobRunState"], run.get("ErrorMessage")
    if state == "SUCCEEDED":
        return None
    return RuntimeError(f"the run {run_id} ended as {state}{f': {reason}' if reason else ''}")


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
