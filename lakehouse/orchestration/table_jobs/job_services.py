"""AWS services that run jobs: start, describe and stop a run."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import dagster as dg

from lakehouse.errors import JobFailed, SettingsError
from lakehouse.orchestration.table_jobs.job_code import SCRIPT
from lakehouse.settings import Settings, TableJob

_GLUE_ENDS = {"SUCCEEDED", "FAILED", "STOPPED", "TIMEOUT", "ERROR", "EXPIRED"}
_CLUSTER_ENDS = {"TERMINATED", "TERMINATED_WITH_ERRORS"}
_SERVERLESS_ENDS = {"SUCCESS", "FAILED", "CANCELLED"}


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
        """Start the job with script arguments, and return the run id."""

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

    def start(self, arguments: Mapping[str, str], name: str) -> str:  # noqa: ARG002
        """Start it."""
        started = self.client.start_job_run(JobName=self.job_name, Arguments=dict(arguments))
        return str(started["JobRunId"])

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
        for error in answer.get("Errors", ()):
            detail = error.get("ErrorDetail", {})
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

    def start(self, arguments: Mapping[str, str], name: str) -> str:
        """Start the cluster with a step."""
        command = ["spark-submit", self.script, *chain.from_iterable(arguments.items())]
        step = {
            "Name": name,
            "ActionOnFailure": "TERMINATE_CLUSTER",
            "HadoopJarStep": {"Jar": "command-runner.jar", "Args": command},
        }
        params = {
            **self.params,
            "Steps": [*self.params.get("Steps", ()), step],
            # The run ends with the cluster.
            "Instances": {
                **self.params.get("Instances", {}),
                "KeepJobFlowAliveWhenNoSteps": False,
            },
        }
        return str(self.client.run_job_flow(**params)["JobFlowId"])

    def state(self, run_id: str) -> JobState:
        """Return the state of the cluster."""
        status = self.client.describe_cluster(ClusterId=run_id)["Cluster"]["Status"]
        name = status["State"]
        reason = status.get("StateChangeReason", {}).get("Message")
        return JobState(name, name in _CLUSTER_ENDS, name == "TERMINATED", reason)

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
        """Start it; the service treats a repeated request with the same token as one start."""
        submit = {
            **self.params.get("jobDriver", {}).get("sparkSubmit", {}),
            "entryPoint": self.script,
            "entryPointArguments": list(chain.from_iterable(arguments.items())),
        }
        token = sha256(json.dumps(dict(arguments), sort_keys=True).encode()).hexdigest()
        params = {**self.params, "jobDriver": {"sparkSubmit": submit}, "clientToken": token}
        return str(self.client.start_job_run(**params)["jobRunId"])

    def state(self, run_id: str) -> JobState:
        """Return the state of a run."""
        application = self.params["applicationId"]
        answer = self.client.get_job_run(applicationId=application, jobRunId=run_id)
        run = answer["jobRun"]
        name = run["state"]
        is_finished = name in _SERVERLESS_ENDS
        return JobState(name, is_finished, name == "SUCCESS", run.get("stateDetails"))

    def stop(self, run_id: str) -> None:
        """Request cancellation of a run."""
        application = self.params["applicationId"]
        self.client.cancel_job_run(applicationId=application, jobRunId=run_id)

    def metadata(self, run_id: str) -> dict[str, Any]:
        """Return the application id and the run id."""
        return {
            "AWS EMR Serverless Application ID": self.params["applicationId"],
            "AWS EMR Serverless Job Run ID": run_id,
        }


def service_of(settings: Settings, job: TableJob) -> JobService:
    """Return the service of a job.

    :raises SettingsError: the file with the EMR parameters is invalid.
    """
    client = aws_client(settings, job.service)
    if job.service == "glue":
        return GlueJob(client, job.name)
    params = start_params(job)
    script = f"s3://{settings.bucket}/{SCRIPT}"
    if job.service == "emr":
        return EmrCluster(client, params, script)
    return EmrServerlessJob(client, params, script)


def aws_client(settings: Settings, service: str) -> Any:
    """Return an AWS client for the configured region.

    It repeats no request: a repeated start could run a job twice, and the caller repeats others.
    """
    import boto3
    from botocore.config import Config

    return boto3.client(
        service,
        region_name=settings.region,
        endpoint_url=settings.endpoint_url,
        config=Config(retries={"total_max_attempts": 1}),
    )


def start_params(job: TableJob) -> dict[str, Any]:
    """Return the start parameters of an EMR job.

    :raises SettingsError: its file is missing or is not a JSON object with the required keys.
    """
    file = Path(job.name).expanduser()
    problem = ""
    params: Any = None
    try:
        params = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        problem = f"{type(error).__name__}: {error}"
    if not problem and not isinstance(params, dict):
        problem = f"a {type(params).__name__}"
    if not problem and job.service == "emr-serverless" and "applicationId" not in params:
        problem = "no applicationId"
    if problem:
        raise SettingsError(
            f"LAKEHOUSE_JOBS names {job.name} for {job.tables}: found {problem}; expected a JSON"
            f" object with the start parameters of {job.service}.",
            next_step="Correct the name, or write the file; docs/glue.md has an example.",
        )
    return dict(params)
