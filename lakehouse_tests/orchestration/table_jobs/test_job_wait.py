"""Whatever happens on the way, a run of a job is waited for; an interrupt stops it first."""

import logging
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from lakehouse.errors import JobFailed
from lakehouse.orchestration.table_jobs import job_wait
from lakehouse.orchestration.table_jobs.job_services import GlueJob, JobState
from lakehouse.orchestration.table_jobs.job_wait import JobEnd, holding_interrupts, run_to_end

pytestmark = pytest.mark.unit
LOG = logging.getLogger(__name__)
RUNNING, STOPPING = (
    JobState("RUNNING", is_finished=False),
    JobState("STOPPING", is_finished=False),
)
STOPPED = JobState("STOPPED", is_finished=True)
DONE = JobState("SUCCEEDED", is_finished=True, has_succeeded=True)


def interrupt() -> None:
    """Interrupt this process, as Ctrl-C does."""
    os.kill(os.getpid(), signal.SIGINT)


@dataclass
class Service:
    """Says one thing after the other, calls what can be called, and then repeats the last."""

    says: list[Any]
    refuses: int = 0
    stops: list[str] = field(default_factory=list)

    def start(self, arguments: Any, name: str) -> str:
        return name

    def find(self, arguments: Any, name: str) -> str | None:
        return name

    def state(self, run_id: str) -> JobState:
        said = self.says.pop(0) if len(self.says) > 1 else self.says[0]
        if callable(said):
            said()
            return RUNNING
        if isinstance(said, Exception):
            raise said
        return said

    def stop(self, run_id: str) -> None:
        if self.refuses:
            self.refuses -= 1
            raise OSError("Rate exceeded")
        self.stops.append(run_id)

    def metadata(self, run_id: str) -> dict[str, Any]:
        return {}


def ended(
    service: Service,
    start: Callable[[], str] = lambda: "jr",
    look: Callable[[], None] = lambda: None,
) -> JobEnd:
    with holding_interrupts() as pop_interrupt:
        return run_to_end(service, start, LOG, look, pop_interrupt)


def test_errors_of_aws_do_not_end_the_wait():
    service = Service([OSError("no network"), RUNNING, OSError("no network"), DONE])

    assert ended(service) == JobEnd("jr", DONE)
    assert service.stops == []


def test_what_a_full_disk_keeps_from_being_noted_does_not_end_the_wait():
    def look() -> None:
        raise OSError("No space left on device")

    assert ended(Service([RUNNING, RUNNING, DONE]), look=look) == JobEnd("jr", DONE)


def test_an_interrupt_stops_the_run_and_waits_for_its_end():
    service = Service([interrupt, RUNNING, STOPPING, STOPPING, STOPPED])

    assert ended(service) == JobEnd("jr", STOPPED, is_interrupted=True)
    assert service.stops == ["jr"]
    assert service.says == [STOPPED]


def test_a_refused_stop_is_tried_again():
    service = Service([interrupt, RUNNING, RUNNING, RUNNING, STOPPED], refuses=2)

    assert ended(service).state == STOPPED
    assert service.stops == ["jr"]


def test_a_second_interrupt_gives_the_run_up():
    service = Service([interrupt, RUNNING, interrupt, STOPPING])

    assert ended(service) == JobEnd("jr", None, is_interrupted=True)


def test_an_interrupt_of_the_start_stops_what_it_started():
    service = Service([RUNNING, RUNNING, STOPPED])

    def start() -> str:
        interrupt()
        return "jr"

    assert ended(service, start) == JobEnd("jr", STOPPED, is_interrupted=True)
    assert service.stops == ["jr"]


def test_a_run_that_cannot_be_asked_for_long_is_stopped_and_given_up(monkeypatch):
    monkeypatch.setattr(job_wait, "_UNKNOWN_SECONDS", 0.2)
    service = Service([OSError("no network")])

    assert ended(service) == JobEnd("jr", None)
    assert service.stops == ["jr"]


def test_a_stop_that_glue_refuses_is_an_error():
    class Client:
        def batch_stop_job_run(self, **_: Any) -> dict[str, Any]:
            detail = {"ErrorCode": "Throttling", "ErrorMessage": "Rate exceeded"}
            return {"SuccessfulSubmissions": [], "Errors": [{"ErrorDetail": detail}]}

    with pytest.raises(JobFailed, match="Glue did not stop the run jr of the job shop"):
        GlueJob(Client(), "shop", Client()).stop("jr")
