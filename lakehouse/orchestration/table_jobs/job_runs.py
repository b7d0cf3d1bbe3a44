"""Starts a job of AWS by Dagster Pipes and waits for its end; what it tells goes through the
bucket while it runs.
"""

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
from dagster_aws.pipes import (
    PipesEMRClient,
    PipesEMRServerlessClient,
    PipesGlueClient,
    PipesS3ContextInjector,
    PipesS3MessageReader,
)

from lakehouse.errors import SettingsError
from lakehouse.orchestration.table_jobs.job_code import RUNS, SCRIPT
from lakehouse.orchestration.table_jobs.job_request import JobRequest
from lakehouse.orchestration.table_jobs.job_script import CODE_ARGUMENT
from lakehouse.settings import Settings, TableJob

if TYPE_CHECKING:
    from dagster import PipesClientCompletedInvocation

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
) -> JobRun:
    """Run a job, and return what it told; an interrupt stops it, and goes on.

    :raises SettingsError: when the file that says how a job of EMR is started is none.
    """
    folder = f"{RUNS}{secrets.token_hex(8)}/"
    _remove_old(store)
    injector = PipesS3ContextInjector(
        bucket=store.bucket, client=store.client, key_prefix=folder
    )
    reader = _Messages(store, folder)
    starting = _Starting(context, settings, job, injector, reader, request.to_json(), code_url)
    try:
        completed = starting.run()
        return JobRun(reader.told, completed.metadata)
    except SettingsError:
        raise
    except Exception as error:
        # An interrupt of a run is no Exception.
        return JobRun(reader.told, failure=error)
    finally:
        # Also what the bucket keeps of what was removed: the request holds keys.
        store.remove_folder(folder)


@dataclass(frozen=True)
class _Starting:
    context: dg.AssetExecutionContext
    settings: Settings
    job: TableJob
    injector: PipesS3ContextInjector
    reader: _Messages
    extras: dict[str, Any]
    code_url: str

    def run(self) -> "PipesClientCompletedInvocation":
        """Run it by the client of its service."""
        services = {
            "glue": self._by_glue,
            "emr": self._by_emr,
            "emr-serverless": self._by_emr_serverless,
        }
        return services[self.job.service]()

    def _by_glue(self) -> "PipesClientCompletedInvocation":
        client = PipesGlueClient(self.injector, self.reader, aws_client(self.settings, "glue"))
        arguments = {CODE_ARGUMENT: self.code_url}
        return client.run(
            context=self.context,
            start_job_run_params={"JobName": self.job.name, "Arguments": arguments},
            extras=self.extras,
        )

    def _by_emr(self) -> "PipesClientCompletedInvocation":
        client = PipesEMRClient(self.reader, aws_client(self.settings, "emr"), self.injector)
        params = start_params(self.job)
        step = {
            "Name": self.extras["table"],
            "ActionOnFailure": "TERMINATE_CLUSTER",
            "HadoopJarStep": {
                "Jar": "command-runner.jar",
                "Args": ["spark-submit", self._script, CODE_ARGUMENT, self.code_url],
            },
        }
        return client.run(
            context=self.context,
            run_job_flow_params={**params, "Steps": [*params.get("Steps", ()), step]},
            extras=self.extras,
        )

    def _by_emr_serverless(self) -> "PipesClientCompletedInvocation":
        client = PipesEMRServerlessClient(
            aws_client(self.settings, "emr-serverless"), self.injector, self.reader
        )
        params = start_params(self.job)
        submit = params.get("jobDriver", {}).get("sparkSubmit", {})
        told = {
            **submit,
            "entryPoint": self._script,
            "entryPointArguments": [CODE_ARGUMENT, self.code_url],
        }
        return client.run(
            context=self.context,
            start_job_run_params={**params, "jobDriver": {"sparkSubmit": told}},
            extras=self.extras,
        )

    @property
    def _script(self) -> str:
        return f"s3://{self.settings.bucket}/{SCRIPT}"


def aws_client(settings: Settings, service: str) -> Any:
    """Return a client of a service of AWS, in the deployment's region."""
    import boto3

    return boto3.client(
        service, region_name=settings.region, endpoint_url=settings.endpoint_url
    )


def start_params(job: TableJob) -> dict[str, Any]:
    """Return what a job of EMR is started with.

    :raises SettingsError: when its file is missing, or holds no JSON object.
    """
    file = Path(job.name).expanduser()
    try:
        params = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _no_params(job, f"{type(error).__name__}: {error}") from error
    if not isinstance(params, dict):
        raise _no_params(job, f"a {type(params).__name__}")
    return params


def _no_params(job: TableJob, found: str) -> SettingsError:
    return SettingsError(
        f"LAKEHOUSE_JOBS names {job.name} for {job.tables}: found {found}; expected a JSON file"
        f" of what a job of {job.service} is started with.",
        next_step="Correct the name, or write the file; docs/glue.md has one.",
    )


def _remove_old(store: "S3ObjectStore") -> None:
    """Remove what runs left that were killed."""
    oldest = datetime.now(UTC) - _KEPT_FOR
    versions = store.all_versions(RUNS)
    store.remove_versions([version for version in versions if version.modified_at < oldest])
