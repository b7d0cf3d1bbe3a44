"""What tests of jobs share."""

import pytest
from dagster._core.pipes import utils

from lakehouse.orchestration.table_jobs import job_runs


@pytest.fixture(autouse=True)
def quick_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utils, "WAIT_FOR_LOGS_AFTER_EXECUTION_INTERVAL", 0)
    monkeypatch.setattr(job_runs, "_POLL_SECONDS", 0.1)
