"""Starts an AWS job with Dagster Pipes and waits for it; messages go through the bucket."""

import logging
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import dagster as dg
from botocore.exceptions import BotoCoreError
from dagster_aws.pipes import PipesS3ContextInjector, PipesS3MessageReader

from lakehouse.orchestration.table_jobs.job_code import RUNS
from lakehouse.orchestration.table_jobs.job_request import JobRequest
from lakehouse.orchestration.table_jobs.job_script import CODE_ARGUMENT
from lakehouse.orchestration.table_jobs.job_services import JobService, service_of
from lakehouse.orchestration.table_jobs.job_start import start_once
from lakehouse.orchestration.table_jobs.job_wait import JobEnd, holding_interrupts, run_to_end
from lakehouse.settings import Settings, TableJob

if TYPE_CHECKING:
    from lakehouse.storage.s3 import S3ObjectStore

_KEPT_FOR = timedelta(days=7)
"""Maximum duration of a Glue job."""
_POLL_SECONDS = 2.0


@dataclass
class JobRun:
    """A finished job: its messages and its failure."""

    messages: Sequence[Any] = ()
    metadata: Mapping[str, Any] | None = None
    """Metadata for Dagster, unless it failed."""
    failure: Exception | None = None
    is_interrupted: bool = False
    """Whether the waiting run must end; the job can have published before."""


class _Messages(PipesS3MessageReader):
    """Reads the messages of a job from the bucket, also of a failed job."""

    def __init__(self, store: "S3ObjectStore", folder: str) -> None:
        super().__init__(bucket=store.bucket, client=store.client, interval=_POLL_SECONDS)
        self._folder = folder
        self._handler: Any = None

    @property
    def expected_writer_count(self) -> int:
        """One job; Dagster's default implementation warns about a preview in each run."""
        return 1

    @property
    def received(self) -> Sequence[Any]:
        """Messages so far."""
        return self._handler.get_custom_messages() if self._handler else ()

    @contextmanager
    def read_messages(self, handler: Any) -> Iterator[Any]:
        """Read messages within the context."""
        self._handler = handler
        with super().read_messages(handler) as params:
            yield params

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
    job: TableJob,
    request: JobRequest,
    code_url: str,
    look: Callable[[Sequence[Any]], None],
) -> JobRun:
    """Run a job to its end and return its messages. An interrupt stops the job.

    An interrupted job can have published before; its messages are returned.

    :param look: called with the messages so far, every few seconds and at the end.
    :raises SettingsError: the file with the EMR parameters is invalid.
    """
    service = service_of(settings, job)
    _remove_old(store)
    # The reader needs seconds after the end: an interrupt would lose the last messages.
    with holding_interrupts() as pop_interrupt:
        job_run = _run(context, service, store, request, code_url, look, pop_interrupt)
        return replace(job_run, is_interrupted=job_run.is_interrupted or pop_interrupt())


def _run(
    context: dg.AssetExecutionContext,
    service: JobService,
    store: "S3ObjectStore",
    request: JobRequest,
    code_url: str,
    look: Callable[[Sequence[Any]], None],
    pop_interrupt: Callable[[], bool],
) -> JobRun:
    folder = f"{RUNS}{secrets.token_hex(8)}/"
    injector = PipesS3ContextInjector(
        bucket=store.bucket, client=store.client, key_prefix=folder
    )
    reader = _Messages(store, folder)
    end: JobEnd | None = None
    failure: Exception | None = None
    try:
        with dg.open_pipes_session(
            context, injector, reader, extras=request.to_json()
        ) as session:
            arguments = {CODE_ARGUMENT: code_url, **session.get_bootstrap_cli_arguments()}
            end = run_to_end(
                service,
                lambda: start_once(
                    service, arguments, request.table, context.log, pop_interrupt
                ),
                context.log,
                lambda: look(reader.received),
                pop_interrupt,
            )
    except Exception as error:
        failure = error
    finally:
        _remove(store, folder, context.log)
    look(reader.received)
    if end is None:
        return JobRun(reader.received, failure=failure)
    return JobRun(
        reader.received,
        service.metadata(end.run_id),
        failure or _failure(end),
        end.is_interrupted,
    )


def _failure(end: JobEnd) -> Exception | None:
    if end.state is None:
        return RuntimeError(f"how the run {end.run_id} ended is not known, and it may go on")
    if end.state.has_succeeded:
        return None
    reason = f": {end.state.reason}" if end.state.reason else ""
    return RuntimeError(f"the run {end.run_id} ended as {end.state.name}{reason}")


def _remove(store: "S3ObjectStore", folder: str, log: logging.Logger) -> None:
    """Delete the request and the messages, which contain keys, with all object versions.

    This also prevents a job that starts late from reading its request.
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
