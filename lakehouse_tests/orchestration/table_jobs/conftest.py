"""What tests of jobs share."""

import pytest
from dagster._core.pipes import utils

from lakehouse.orchestration.table_jobs import job_start, job_wait


@pytest.fixture(autouse=True)
def no_late_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait 10 seconds for what a job that is gone may have said."""
    monkeypatch.setattr(utils, "WAIT_FOR_LOGS_AFTER_EXECUTION_INTERVAL", 0)


@pytest.fixture(autouse=True)
def quick_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask ten times a second how a job is."""
    monkeypatch.setattr(job_wait, "_POLL_SECONDS", 0.1)
    monkeypatch.setattr(job_wait, "_TURN_SECONDS", 0.05)
    monkeypatch.setattr(job_start, "_POLL_SECONDS", 0.1)
    monkeypatch.setattr(job_start, "_APPEARS_WITHIN_SECONDS", 0.5)
    monkeypatch.setattr(job_start, "_PAUSES_SECONDS", (0.05,) * 4)
