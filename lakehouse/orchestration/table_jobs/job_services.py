"""The services of AWS that run a job: each starts one, says how it is, and stops it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    """How a run of a job is: the service's word for it, and the reason that it gives."""

    name: str
    has_ended: bool
    has_succeeded: bool = False
    reason: str | None = None


class JobService(Protocol):
    """One job of a service. All methods raise what boto3 does."""

    def start(self, arguments: Mapping[str, str], name: str) -> str:
        """Start the job with arguments of its script, and return the id of the run."""

    def state(self, run_id: str) -> JobState:
        """Return how a run is."""

    def stop(self, run_id: str) -> None:
        """Ask the service to stop a run, which goes on until its state says otherwise."""

    def metadata(self, run_id: str) -> dict[str, Any]:
        """Return what Dagster shows of a run."""


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
        """Return how a run is."""
        run = self.client.get_job_run(JobName=self.job_name, RunId=run_id)["JobRun"]
        name = run["JobRunState"]
        has_ended = name in _GLUE_ENDS
        return JobState(name, has_ended, name == "SUCCEEDED", run.get("ErrorMessage"))

    def stop(self, run_id: str) -> None:
        """Ask to stop a run.

        :raises JobFailed: when Glue refuses to.
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
        """Return the run's id, the job's name, and where the console shows it."""
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
    """A cluster of EMR that is started for one run, and ends after its step."""

    client: Any
    params: Mapping[str, Any]
    script: str

    def start(self, arguments: Mapping[str, str], name: str) -> str:
        """Start the cluster with a step."""
        command = ["spark-submit", self.script, *_in_line(arguments)]
        step = {
            "Name": name,
            "ActionOnFailure": "TERMINATE_CLUSTER",
            "HadoopJarStep": {"Jar": "command-runner.jar", "Args": command},
        }
        # The end of the cluster is the end of the run.
        instances = {
            **self.params.get("Instances", {}),
            "KeepJobFlowAliveWhenNoSteps": False,
        }
        steps = [*self.params.get("Steps", ()), step]
        started = self.client.run_job_flow(
            **{**self.params, "Instances": instances, "Steps": steps}
        )
        return str(started["JobFlowId"])

    def state(self, run_id: str) -> JobState:
        """Return how the cluster is."""
        cluster = self.client.describe_cluster(ClusterId=run_id)["Cluster"]
        status = cluster["Status"]
        name = status["State"]
        has_ended = name in _CLUSTER_ENDS
        reason = status.get("StateChangeReason", {}).get("Message")
        return JobState(name, has_ended, name == "TERMINATED", reason)

    def stop(self, run_id: str) -> None:
        """Ask to end the cluster."""
        self.client.terminate_job_flows(JobFlowIds=[run_id])

    def metadata(self, run_id: str) -> dict[str, Any]:
        """Return the cluster's id, and where the console shows it."""
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
        started = self.client.start_job_run(
            **{**self.params, "jobDriver": {"sparkSubmit": submit}}
        )
        return str(started["jobRunId"])

    def state(self, run_id: str) -> JobState:
        """Return how a run is."""
        run = self.client.get_job_run(applicationId=self._application, jobRunId=run_id)[
            "jobRun"
        ]
        name = run["state"]
        has_ended = name in _SERVERLESS_ENDS
        return JobState(name, has_ended, name == "SUCCESS", run.get("stateDetails"))

    def stop(self, run_id: str) -> None:
        """Ask to cancel a run."""
        self.client.cancel_job_run(applicationId=self._application, jobRunId=run_id)

    def metadata(self, run_id: str) -> dict[str, Any]:
        """Return the ids of the application and of the run."""
        return {
            "AWS EMR Serverless Application ID": self._application,
            "AWS EMR Serverless Job Run ID": run_id,
        }

    @property
    def _application(self) -> str:
        return str(self.params["applicationId"])


def service_of(settings: Settings, job: TableJob) -> JobService:
    """Return the service of a job.

    :raises SettingsError: when the file that says how a job of EMR is started is none.
    """
    if job.service == "glue":
        return GlueJob(aws_client(settings, "glue"), job.name)
    params, client = start_params(job), aws_client(settings, job.service)
    script = f"s3://{settings.bucket}/{SCRIPT}"
    if job.service == "emr":
        return EmrCluster(client, params, script)
    return EmrServerlessJob(client, params, script)


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
