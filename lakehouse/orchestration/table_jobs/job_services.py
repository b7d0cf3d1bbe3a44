"""AWS services that run jobs: start, find, describe and stop a run."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

import dagster as dg

from lakehouse.errors import JobFailed, SettingsError
from lakehouse.orchestration.table_jobs.job_code import SCRIPT
from lakehouse.settings import Settings, TableJob

_GLUE_ENDS = {"SUCCEEDED", "FAILED", "STOPPED", "TIMEOUT", "ERROR", "EXPIRED"}
_CLUSTER_ENDS = {"TERMINATED", "TERMINATED_WITH_ERRORS"}
_SERVERLESS_ENDS = {"SUCCESS", "FAILED", "CANCELLED"}
_STARTED_WITHIN = timedelta(hours=3)
"""Maximum age of a new run in a search; allows for clock differences."""


@dataclass(frozen=True)
class JobState:
    """State of a job run: the service's state name and its reason."""

    name: str
    is_finished: bool
    has_succeeded: bool = False
    reason: str | None = None


class JobService(Protocol):
    """One job of a service. All methods raise boto3 errors."""

    def start(self, arguments: Mapping[str, str], name: str) -> str:
        """Start the job with script arguments, and return the run id.

        The request is not retried: without a response, a run can exist.
        """

    def find(self, arguments: Mapping[str, str], name: str) -> str | None:
        """Return the id of the new run with these arguments; None if there is none."""

    def state(self, run_id: str) -> JobState:
        """Return the state of a run."""

    def stop(self, run_id: str) -> None:
        """Request a stop; the run continues until its state changes."""

    def metadata(self, run_id: str) -> dict[str, Any]:
        """Return the metadata of a run for Dagster."""


@dataclass(frozen=True)
class GlueJob:
    """A job that is defined in AWS Glue."""

    client: Any
    job_name: str
    starter: Any
    """A client without retries."""

    def start(self, arguments: Mapping[str, str], name: str) -> str:  # noqa: ARG002
        """Start it."""
        started = self.starter.start_job_run(JobName=self.job_name, Arguments=dict(arguments))
        return str(started["JobRunId"])

    def find(self, arguments: Mapping[str, str], name: str) -> str | None:  # noqa: ARG002
        """Return the run whose arguments include these."""
        oldest = datetime.now(UTC) - _STARTED_WITHIN
        pages = self.client.get_paginator("get_job_runs").paginate(JobName=self.job_name)
        for page in pages:
            runs = page["JobRuns"]
            for run in runs:
                if arguments.items() <= run.get("Arguments", {}).items():
                    return str(run["Id"])
            # Newest first; there can be many thousands.
            if all(run.get("StartedOn", oldest) <= oldest for run in runs):
                return None
        return None

    def state(self, run_id: str) -> JobState:
        """Return the state of a run."""
        run = self.client.get_job_run(JobName=self.job_name, RunId=run_id)["JobRun"]
        name = run["JobRunState"]
        is_finished = name in _GLUE_ENDS
        return JobState(name, is_finished, name == "SUCCEEDED", run.get("ErrorMessage"))

    def stop(self, run_id: str) -> None:
        """Request a stop.

        :raises JobFailed: Glue rejects the request.
        """
        answer = self.client.batch_stop_job_run(JobName=self.job_name, JobRunIds=[run_id])
        for refusal in answer.get("Errors", ()):
            detail = refusal.get("ErrorDetail", {})
            raise JobFailed(
                f"Glue did not stop the run {run_id} of the job {self.job_name}:"
                f" {detail.get('ErrorCode')}, {detail.get('ErrorMessage')}.",
                next_step="Stop it in the console of AWS Glue.",
            )

    def metadata(self, run_id: str) -> dict[str, Any]:
        """Return the run id, the job name, and the console URL."""
        region = self.client.meta.region_name
        url = (
            f"https://{region}.console.aws.amazon.com/gluestudio/home?region={region}"
            f"#/job/{self.job_name}/run/{run_id}"
        )
        return {
            "AWS Glue Job Run ID": run_id,
            "AWS Glue Job Name": self.job_name,
            "AWS Glue Job Run URL": dg.MetadataValue.url(url),
        }


@dataclass(frozen=True)
class EmrCluster:
    """An EMR cluster that is started for one run and terminates after its step."""

    client: Any
    params: Mapping[str, Any]
    script: str
    starter: Any
    """A client without retries."""

    def start(self, arguments: Mapping[str, str], name: str) -> str:
        """Start the cluster with a step."""
        step = {
            "Name": name,
            "ActionOnFailure": "TERMINATE_CLUSTER",
            "HadoopJarStep": {"Jar": "command-runner.jar", "Args": self._command(arguments)},
        }
        # The run ends with the cluster.
        instances = {
            **self.params.get("Instances", {}),
            "KeepJobFlowAliveWhenNoSteps": False,
        }
        steps = [*self.params.get("Steps", ()), step]
        started = self.starter.run_job_flow(
            **{**self.params, "Instances": instances, "Steps": steps}
        )
        return str(started["JobFlowId"])

    def find(self, arguments: Mapping[str, str], name: str) -> str | None:  # noqa: ARG002
        """Return the cluster with a step that has these arguments."""
        pages = self.client.get_paginator("list_clusters").paginate(
            CreatedAfter=datetime.now(UTC) - _STARTED_WITHIN
        )
        for page in pages:
            for cluster in page["Clusters"]:
                is_named_so = cluster["Name"] == self.params.get("Name")
                if is_named_so and self._has_step(cluster["Id"], arguments):
                    return str(cluster["Id"])
        return None

    def _has_step(self, cluster_id: str, arguments: Mapping[str, str]) -> bool:
        command = self._command(arguments)
        pages = self.client.get_paginator("list_steps").paginate(ClusterId=cluster_id)
        return any(
            step["Config"].get("Args") == command for page in pages for step in page["Steps"]
        )

    def _command(self, arguments: Mapping[str, str]) -> list[str]:
        return ["spark-submit", self.script, *_in_line(arguments)]

    def state(self, run_id: str) -> JobState:
        """Return the state of the cluster."""
        cluster = self.client.describe_cluster(ClusterId=run_id)["Cluster"]
        status = cluster["Status"]
        name = status["State"]
        is_finished = name in _CLUSTER_ENDS
        reason = status.get("StateChangeReason", {}).get("Message")
        return JobState(name, is_finished, name == "TERMINATED", reason)

    def stop(self, run_id: str) -> None:
        """Request termination of the cluster."""
        self.client.terminate_job_flows(JobFlowIds=[run_id])

    def metadata(self, run_id: str) -> dict[str, Any]:
        """Return the cluster id and the console URL."""
        region = self.client.meta.region_name
        url = (
            f"https://{region}.console.aws.amazon.com/emr/home?region={region}"
            f"#/clusterDetails/{run_id}"
        )
        return {"AWS EMR Cluster ID": run_id, "AWS EMR Cluster": dg.MetadataValue.url(url)}


@dataclass(frozen=True)
class EmrServerlessJob:
    """A run of an application of EMR Serverless."""

    client: Any
    params: Mapping[str, Any]
    script: str

    def start(self, arguments: Mapping[str, str], name: str) -> str:  # noqa: ARG002
        """Start it."""
        submit = {
            **self.params.get("jobDriver", {}).get("sparkSubmit", {}),
            "entryPoint": self.script,
            "entryPointArguments": _in_line(arguments),
        }
        token = sha256(json.dumps(dict(arguments), sort_keys=True).encode()).hexdigest()
        started = self.client.start_job_run(
            **{**self.params, "jobDriver": {"sparkSubmit": submit}, "clientToken": token}
        )
        return str(started["jobRunId"])

    def find(self, arguments: Mapping[str, str], name: str) -> str | None:
        """Start it again with the same token, which the service treats as the same start."""
        return self.start(arguments, name)

    def state(self, run_id: str) -> JobState:
        """Return the state of a run."""
        run = self.client.get_job_run(applicationId=self._application, jobRunId=run_id)[
            "jobRun"
        ]
        name = run["state"]
        is_finished = name in _SERVERLESS_ENDS
        return JobState(name, is_finished, name == "SUCCESS", run.get("stateDetails"))

    def stop(self, run_id: str) -> None:
        """Request cancellation of a run."""
        self.client.cancel_job_run(applicationId=self._application, jobRunId=run_id)

    def metadata(self, run_id: str) -> dict[str, Any]:
        """Return the application id and the run id."""
        return {
            "AWS EMR Serverless Application ID": self._application,
            "AWS EMR Serverless Job Run ID": run_id,
        }

    @property
    def _application(self) -> str:
        return str(self.params["applicationId"])


def service_of(settings: Settings, job: TableJob) -> JobService:
    """Return the service of a job.

    :raises SettingsError: the file with the EMR parameters is invalid.
    """
    client = aws_client(settings, job.service)
    if job.service == "glue":
        return GlueJob(client, job.name, aws_client(settings, "glue", attempts=1))
    params = start_params(job)
    script = f"s3://{settings.bucket}/{SCRIPT}"
    if job.service == "emr":
        return EmrCluster(client, params, script, aws_client(settings, "emr", attempts=1))
    return EmrServerlessJob(client, params, script)


def aws_client(settings: Settings, service: str, attempts: int | None = None) -> Any:
    """Return an AWS client for the configured region.

    :param attempts: maximum number of attempts; None for the default of boto3.
    """
    import boto3
    from botocore.config import Config

    config = Config(retries={"total_max_attempts": attempts}) if attempts else None
    return boto3.client(
        service,
        region_name=settings.region,
        endpoint_url=settings.endpoint_url,
        config=config,
    )


def start_params(job: TableJob) -> dict[str, Any]:
    """Return the start parameters of an EMR job.

    :raises SettingsError: its file is missing or is not a JSON object.
    """
    file = Path(job.name).expanduser()
    try:
        params = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _no_params(job, f"{type(error).__name__}: {error}") from error
    if not isinstance(params, dict):
        raise _no_params(job, f"a {type(params).__name__}")
    if job.service == "emr-serverless" and "applicationId" not in params:
        raise _no_params(job, "no applicationId")
    return params


def _no_params(job: TableJob, found: str) -> SettingsError:
    return SettingsError(
        f"LAKEHOUSE_JOBS names {job.name} for {job.tables}: found {found}; expected a JSON file"
        f" of what a job of {job.service} is started with.",
        next_step="Correct the name, or write the file; docs/glue.md has one.",
    )


def _in_line(arguments: Mapping[str, str]) -> Sequence[str]:
    return [part for item in arguments.items() for part in item]
