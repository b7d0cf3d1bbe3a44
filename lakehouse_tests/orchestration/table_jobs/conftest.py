"""What tests of jobs share."""

import pytest
from dagster._core.pipes import utils


@pytest.fixture(autouse=True)
def no_late_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait 10 seconds for what a job that is gone may have said."""
    monkeypatch.setattr(utils, "WAIT_FOR_LOGS_AFTER_EXECUTION_INTERVAL", 0)
