"""A job is started once, whatever becomes of the answer; its run is found and waited for."""

import json
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from botocore.exceptions import ClientError

from lakehouse.errors import JobFailed
from lakehouse.orchestration.table_jobs import job_start
from lakehouse.orchestration.table_jobs.job_services import JobService, JobState, service_of
from lakehouse.orchestration.table_jobs.job_start import start_once
from lakehouse.orchestration.table_jobs.job_wait import JobEnd, run_to_end
from lakehouse.settings import Settings, TableJob
from lakehouse_tests.conftest import on_aws

pytestmark = pytest.mark.unit
LOG = logging.getLogger(__name__)
ARGUMENTS = {"--lakehouse-code": "s3://lake/code.zip", "--dagster-pipes-context": "abc"}
PARAMS = {
    "emr": {"Name": "figures"},
    "emr-serverless": {
        "applicationId": "app",
        "executionRoleArn": "arn:aws:iam::123456789012:role/job",
    },
}
SERVICES = ["glue", "emr", "emr-serverless"]


@dataclass
class Aws:
    """Answers as Glue, EMR and EMR Serverless do; what becomes of starts is told by `answers`, each
    of which is used once.
    """

    answers: list[str] = field(default_factory=list)
    """`lost`: begun, and the connection is closed; otherwise the code of an error, for which
    nothing was begun, or with `+` before it something was.
    """
    started: list[dict[str, Any]] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)
    looks: int = 0
    found_from_look: int = 1
    refusals: list[str] = field(default_factory=list)
    """Codes of errors that looks are answered with, each once and the last for good."""

    def start(self, asked: dict[str, Any]) -> str | None:
        """Begin a run, once for each token; return what is to be answered in place of it."""
        self.started.append(asked)
        answer = self.answers.pop(0) if self.answers else None
        token = asked.get("clientToken")
        is_known = token and any(token == run.get("clientToken") for run in self.runs)
        if not is_known and (answer is None or answer.startswith(("+", "lost"))):
            self.runs.append(asked)
        return answer.lstrip("+") if answer else None

    def answer(self, operation: str, asked: dict[str, Any]) -> Any:
        """Return the answer to any other request."""
        if operation in ("GetJobRuns", "ListClusters"):
            self.looks += 1
        runs = self.runs if self.looks >= self.found_from_look else []
        if operation == "GetJobRuns":
            return {
                "JobRuns": [
                    {"Id": "run-1", "Arguments": {"--more": "x", **run["Arguments"]}}
                    for run in runs
                ]
            }
        if operation == "ListClusters":
            others = [{"Id": "other", "Name": "other"}, {"Id": "run-0", "Name": "figures"}]
            return {"Clusters": [*others, *({"Id": "run-1", "Name": "figures"} for _ in runs)]}
        if operation == "ListSteps":
            args = ["none"]
            if asked["ClusterId"] == "run-1":
                args = runs[0]["Steps"][-1]["HadoopJarStep"]["Args"]
            return {"Steps": [{"Config": {"Args": args}}]}
        if operation == "DescribeCluster":
            return {"Cluster": {"Id": "run-1", "Status": {"State": "TERMINATED"}}}
        return {"JobRun": {"Id": "run-1", "JobRunState": "SUCCEEDED"}}


class Handler(BaseHTTPRequestHandler):
    """Reads a request in JSON, and has it answered."""

    aws: Aws

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        operation = self.headers.get("X-Amz-Target", "StartJobRun").rpartition(".")[2]
        if operation in ("StartJobRun", "RunJobFlow"):
            instead = self.aws.start(asked)
            ids = ("JobRunId", "JobFlowId", "jobRunId", "applicationId", "arn")
            self._answer(instead, dict.fromkeys(ids, "run-1"))
        elif self.aws.refusals:
            is_last = len(self.aws.refusals) == 1
            self._answer(self.aws.refusals[0] if is_last else self.aws.refusals.pop(0), {})
        else:
            self._answer(None, self.aws.answer(operation, asked))

    def do_GET(self) -> None:
        self._answer(None, {"jobRun": {"state": "SUCCESS", "jobRunId": "run-1"}})

    def _answer(self, instead: str | None, content: Any) -> None:
        if instead == "lost":
            self.close_connection = True
            return
        status = 500 if (instead or "").startswith("Internal") else 400 if instead else 200
        raw = json.dumps(
            {"__type": instead, "message": "said"} if instead else content
        ).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/x-amz-json-1.1")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def aws() -> Aws:
    """What AWS does with starts."""
    return Aws()


@pytest.fixture
def service_named(
    aws: Aws, settings: Settings, tmp_path: Path
) -> Iterator[Callable[[str], JobService]]:
    """Opens a service by clients of boto3."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Of", (Handler,), {"aws": aws}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name, params in PARAMS.items():
        (tmp_path / name).write_text(json.dumps(params))
    address = f"http://127.0.0.1:{server.server_port}"
    here = replace(on_aws(settings), endpoint_url=address)
    yield lambda name: service_of(
        here, TableJob("gold.*", name, "shop" if name == "glue" else str(tmp_path / name))
    )
    server.shutdown()
    server.server_close()


def ended(service: JobService) -> JobEnd:
    """Start a job and wait for its end."""

    def start() -> str:
        return start_once(service, ARGUMENTS, "gold.figures", LOG, lambda: False)

    return run_to_end(service, start, LOG, lambda: None, lambda: False)


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("answer", ["lost", "+InternalServiceException"])
def test_a_run_whose_start_was_not_answered_is_waited_for(
    aws: Aws, service_named, service: str, answer: str
) -> None:
    aws.answers = [answer]

    end = ended(service_named(service))

    assert end.run_id == "run-1"
    assert end.state
    assert end.state.has_succeeded
    assert len(aws.runs) == 1


def test_a_run_that_appears_late_is_found(aws: Aws, service_named) -> None:
    aws.answers, aws.found_from_look = ["lost"], 3

    assert ended(service_named("glue")).run_id == "run-1"
    assert len(aws.started) == 1


def test_a_run_is_found_though_aws_says_that_one_goes_on(aws: Aws, service_named) -> None:
    aws.answers = ["+ConcurrentRunsExceededException"]

    assert ended(service_named("glue")).run_id == "run-1"
    assert len(aws.started) == 1


def test_a_run_of_another_is_not_taken_for_ones_own(aws: Aws, service_named) -> None:
    aws.runs = [{"Arguments": {"--dagster-pipes-context": "of another"}}]
    aws.answers = ["ConcurrentRunsExceededException"]

    with pytest.raises(ClientError, match="ConcurrentRunsExceeded"):
        ended(service_named("glue"))

    assert (len(aws.started), aws.looks) == (1, 1)


@pytest.mark.parametrize("service", ["glue", "emr"])
def test_a_start_that_began_nothing_is_not_repeated(
    aws: Aws, service_named, service: str
) -> None:
    aws.answers = ["InternalServiceException"]

    with pytest.raises(ClientError, match="InternalServiceException"):
        ended(service_named(service))

    assert len(aws.started) == 1
    assert aws.looks > 1


def test_a_start_that_is_one_too_many_at_once_is_repeated(aws: Aws, service_named) -> None:
    aws.answers = ["ThrottlingException", "ThrottlingException"]

    assert ended(service_named("glue")).run_id == "run-1"
    assert (len(aws.started), len(aws.runs), aws.looks) == (3, 1, 0)


def test_a_refused_start_is_not_looked_for(aws: Aws, service_named) -> None:
    aws.answers = ["EntityNotFoundException"]

    with pytest.raises(ClientError, match="EntityNotFoundException"):
        ended(service_named("glue"))

    assert (len(aws.started), aws.looks) == (1, 0)


def test_a_run_that_nobody_may_look_for_is_said_not_to_be_known(
    aws: Aws, service_named, monkeypatch
) -> None:
    monkeypatch.setattr(job_start, "_UNKNOWN_SECONDS", 0.2)
    aws.answers, aws.refusals = ["lost"], ["AccessDeniedException"]

    with pytest.raises(
        JobFailed, match=r"for gold\.figures is not known: .*AccessDenied.* stop it there"
    ):
        ended(service_named("glue"))


@pytest.mark.parametrize("refused", [[], ["ExpiredTokenException", "ThrottlingException"]])
def test_who_may_not_list_runs_is_told_at_once_that_another_goes_on(
    aws: Aws, service_named, monkeypatch, refused: list[str]
) -> None:
    monkeypatch.setattr(job_start, "_POLL_SECONDS", 0.0)
    monkeypatch.setattr(job_start, "_UNKNOWN_SECONDS", 20.0)
    aws.answers = ["ConcurrentRunsExceededException"]
    aws.refusals = [*refused, "AccessDeniedException"]

    with pytest.raises(
        JobFailed,
        match=r"(?s)began no job for gold\.figures: .*ConcurrentRuns.*AccessDenied.*GetJobRuns",
    ):
        ended(service_named("glue"))

    assert len(aws.started) == 1


@dataclass
class Away:
    """A service that loses the answer to a start, and cannot be asked for a while."""

    turns: int

    def start(self, arguments: Any, name: str) -> str:
        raise OSError("no answer")

    def find(self, arguments: Any, name: str) -> str | None:
        self.turns -= 1
        if self.turns:
            raise OSError("no network")
        return "run-1"

    def state(self, run_id: str) -> JobState:
        return JobState("SUCCEEDED", is_finished=True, has_succeeded=True)

    def stop(self, run_id: str) -> None:
        raise AssertionError("It has ended.")

    def metadata(self, run_id: str) -> dict[str, Any]:
        return {}


def test_a_run_is_looked_for_until_the_network_is_back(monkeypatch) -> None:
    monkeypatch.setattr(job_start, "_APPEARS_WITHIN_SECONDS", 0.0)

    assert start_once(Away(3), ARGUMENTS, "gold.figures", LOG, lambda: False) == "run-1"


def test_an_interrupt_ends_the_search_where_aws_cannot_be_asked(caplog) -> None:
    with pytest.raises(dg.DagsterExecutionInterruptedError):
        start_once(Away(9), ARGUMENTS, "gold.figures", LOG, lambda: True)

    assert "not looked for any longer, and may go on" in caplog.text
