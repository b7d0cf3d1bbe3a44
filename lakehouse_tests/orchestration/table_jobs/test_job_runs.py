"""A job is waited for despite errors of AWS; an interrupt stops it first."""

import logging
from dataclasses import dataclass, field
from typing import Any

import pytest

from lakehouse.orchestration.table_jobs import job_runs
from lakehouse.orchestration.table_jobs.job_runs import wait_for_end
from lakehouse.storage.s3 import open_bucket
from lakehouse.table_job import _ReadOnce
from lakehouse_tests.conftest import keep_versions

pytestmark = pytest.mark.unit
LOG = logging.getLogger(__name__)
OUTAGE = OSError("no network")


@dataclass
class Glue:
    answers: list[Any]
    failing_stops: int = 0
    stops: list[str] = field(default_factory=list)

    def get_job_run(self, **_: Any) -> dict[str, Any]:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return {"JobRun": {"JobRunState": answer}}

    def batch_stop_job_run(self, JobName: str, JobRunIds: list[str]) -> dict[str, Any]:  # noqa: N803
        self.stops += JobRunIds
        if len(self.stops) <= self.failing_stops:
            raise OUTAGE
        return {"Errors": []}


def test_an_outage_does_not_end_the_wait():
    glue = Glue([OUTAGE, "RUNNING", OUTAGE, "SUCCEEDED"])

    assert wait_for_end(glue, "shop", "jr", LOG) is None
    assert glue.stops == []


def test_an_interrupt_stops_the_run_and_waits_for_its_end():
    glue = Glue([KeyboardInterrupt(), "RUNNING", "RUNNING", "STOPPED"])

    with pytest.raises(KeyboardInterrupt):
        wait_for_end(glue, "shop", "jr", LOG)
    assert (glue.stops, glue.answers) == (["jr", "jr"], ["STOPPED"])


def test_a_stop_is_repeated_until_the_run_has_ended():
    glue = Glue([KeyboardInterrupt(), "RUNNING", "RUNNING", "STOPPED"], failing_stops=1)

    with pytest.raises(KeyboardInterrupt):
        wait_for_end(glue, "shop", "jr", LOG)
    assert (glue.stops, glue.answers) == (["jr", "jr"], ["STOPPED"])


def test_another_interrupt_gives_up():
    glue = Glue([KeyboardInterrupt(), "RUNNING", KeyboardInterrupt(), "STOPPED"])

    with pytest.raises(KeyboardInterrupt):
        wait_for_end(glue, "shop", "jr", LOG)
    assert glue.answers == ["STOPPED"]


def test_a_run_of_unknown_state_is_given_up(monkeypatch):
    monkeypatch.setattr(job_runs, "_UNKNOWN_SECONDS", 0.2)

    assert "unknown" in str(wait_for_end(Glue([OUTAGE]), "shop", "jr", LOG))


def test_a_job_removes_what_it_was_asked_with_its_version(aws_settings):
    store = open_bucket(aws_settings)
    keep_versions(store)
    store.write_text("jobs/runs/a/context.json", "{}")
    request = {"bucket": store.bucket, "key": "jobs/runs/a/context.json"}
    with _ReadOnce(store.client).load_context(request) as context:
        assert context == {}
        assert store.all_versions("jobs/runs/") == []
