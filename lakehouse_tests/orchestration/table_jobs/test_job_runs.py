"""A job is waited for despite errors of AWS; an interrupt stops it first."""

import logging
from dataclasses import dataclass, field
from typing import Any

import pytest

from lakehouse.errors import JobFailed
from lakehouse.orchestration.table_jobs import job_runs
from lakehouse.orchestration.table_jobs.job_runs import JobRun, _wait
from lakehouse.orchestration.table_jobs.job_services import GlueJob, JobState

pytestmark = pytest.mark.unit
LOG = logging.getLogger(__name__)
RUNNING = JobState("RUNNING", is_finished=False)
STOPPED = JobState("STOPPED", is_finished=True)
DONE = JobState("SUCCEEDED", is_finished=True, has_succeeded=True)
OUTAGE = OSError("no network")


@dataclass
class Service:
    answers: list[Any]
    failing_stops: int = 0
    stops: list[str] = field(default_factory=list)

    def start(self, arguments: Any, name: str) -> str:
        raise NotImplementedError

    def state(self, run_id: str) -> JobState:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def stop(self, run_id: str) -> None:
        if self.failing_stops:
            self.failing_stops -= 1
            raise OSError("Rate exceeded")
        self.stops.append(run_id)

    def metadata(self, run_id: str) -> dict[str, Any]:
        raise NotImplementedError


def test_an_outage_does_not_end_the_wait():
    service = Service([OUTAGE, RUNNING, OUTAGE, DONE])

    assert _wait(service, "jr", LOG, JobRun()) == DONE
    assert service.stops == []


@pytest.mark.parametrize("failing_stops", [0, 2])
def test_an_interrupt_stops_the_run_and_waits_for_its_end(failing_stops):
    answers = [KeyboardInterrupt(), RUNNING, RUNNING, RUNNING, STOPPED]
    service, job_run = Service(answers, failing_stops), JobRun()

    assert _wait(service, "jr", LOG, job_run) == STOPPED
    assert job_run.is_interrupted
    assert service.stops == ["jr"]


def test_a_second_interrupt_ends_the_wait():
    service = Service([KeyboardInterrupt(), RUNNING, KeyboardInterrupt(), STOPPED])

    with pytest.raises(KeyboardInterrupt):
        _wait(service, "jr", LOG, JobRun())


def test_a_run_of_unknown_state_is_given_up(monkeypatch):
    monkeypatch.setattr(job_runs, "_UNKNOWN_SECONDS", 0.2)

    assert _wait(Service([OUTAGE]), "jr", LOG, JobRun()) is None


def test_a_stop_that_glue_rejects_is_an_error():
    class Client:
        def batch_stop_job_run(self, **_: Any) -> dict[str, Any]:
            detail = {"ErrorCode": "Throttling", "ErrorMessage": "Rate exceeded"}
            return {"SuccessfulSubmissions": [], "Errors": [{"ErrorDetail": detail}]}

    with pytest.raises(JobFailed, match="Throttling"):
        GlueJob(Client(), "shop").stop("jr")
