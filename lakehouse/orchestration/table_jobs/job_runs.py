"""Starts a job of AWS by Dagster Pipes and waits for its end; what it tells goes through the
bucket while it runs.
"""

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

from lakehouse.orchestration.dagster_internals import holding_interrupts
from lakehouse.orchestration.table_jobs.job_code import RUNS
from lakehouse.orchestration.table_jobs.job_request import JobRequest
from lakehouse.orchestration.table_jobs.job_script import CODE_ARGUMENT
from lakehouse.orchestration.table_jobs.job_services import JobService, service_of
from lakehouse.orchestration.table_jobs.job_start import start_once
from lakehouse.orchestration.table_jobs.job_wait import JobEnd, run_to_end
from lakehouse.settings import Settings, TableJob

if TYPE_CHECKING:
    from lakehouse.storage.s3 import S3ObjectStore

_KEPT_FOR = timedelta(days=7)
"""A job of Glue may run that long."""
_POLL_SECONDS = 2.0


@dataclass
class JobRun:
    """A job that has ended: what it told, and what of it failed."""

    messages: Sequence[Any] = ()
    metadata: Mapping[str, Any] | None = None
    """What Dagster shows of it, where it did not fail."""
    failure: Exception | None = None
    is_interrupted: bool = False
    """Whether the run that waited for it is to end; the job may have published before."""


class _Messages(PipesS3MessageReader):
    """Reads what a job tells from a folder of the bucket, and keeps it also of one that fails."""

    def __init__(self, store: "S3ObjectStore", folder: str) -> None:
        super().__init__(bucket=store.bucket, client=store.client, interval=_POLL_SECONDS)
        self._folder = folder
        self._handler: Any = None

    @property
    def expected_writer_count(self) -> int:
        """One job tells; Dagster's own says of itself that it is a preview, at each run."""
        return 1

    @property
    def told(self) -> Sequence[Any]:
        """The messages so far."""
        return self._handler.get_custom_messages() if self._handler else ()

    @contextmanager
    def read_messages(self, handler: Any) -> Iterator[Any]:
        """Read until the end of the block."""
        self._handler = handler
        with super().read_messages(handler) as params:
            yield params

    def messages_are_readable(self, params: Any) -> bool:
        """Whether there is a message; not while the network is away, which would end the
        reading.
        """
        try:
            return bool(super().messages_are_readable(params))
        except BotoCoreError:
            return False

    def download_messages_chunk(self, index: int, params: Any) -> str | None:
        """Return some messages; none while the network is away."""
        try:
            return super().download_messages_chunk(index, params)
        except BotoCoreError:
            return None

    @contextmanager
    def get_params(self) -> Iterator[Any]:
        """Give the folder that a job writes to."""
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
    """Run a job until it has ended, and return what it told. An interrupt stops it; what it told
    is returned all the same, since it may have published the table by then.

    :param look: called with what was told so far, each few seconds and at the end.
    :raises SettingsError: when the file that says how a job of EMR is started is none.
    """
    service = service_of(settings, job)
    _remove_old(store)
    # The last messages are read for seconds after the end: an interrupt then would lose them.
    with holding_interrupts() as pop_interrupt:
        ended = _run(context, service, store, request, code_url, look, pop_interrupt)
        return replace(ended, is_interrupted=ended.is_interrupted or pop_interrupt())


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
                lambda: look(reader.told),
                pop_interrupt,
            )
    except Exception as error:
        failure = error
    finally:
        _remove(store, folder, context.log)
    look(reader.told)
    if end is None:
        return JobRun(reader.told, failure=failure)
    return JobRun(
        reader.told,
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
    """Remove what was asked and told, with what the bucket keeps of it: the request holds keys.
    Of a run that was not started, or not heard of again, nobody can read it any more.
    """
    try:
        store.remove_folder(folder)
    except Exception as error:
        # What came of the table counts more.
        log.warning(
            f"{store.uri(folder)} was not removed; an erasure or a later run does: {error}"
        )


def _remove_old(store: "S3ObjectStore") -> None:
    """Remove what runs left that were killed."""
    oldest = datetime.now(UTC) - _KEPT_FOR
    versions = store.all_versions(RUNS)
    store.remove_versions([version for version in versions if version.modified_at < oldest])
