"""A process that erases is killed in the middle of a step: the next call ends in the same state."""

from pathlib import Path
from typing import Any

import pytest

from lakehouse.iceberg.upkeep import expire_snapshots
from lakehouse.privacy import erasure_steps
from lakehouse.settings import Settings
from lakehouse_tests.conftest import settings_at
from lakehouse_tests.privacy.an_erasure import (
    ANNA,
    ANNA_BEFORE,
    HERS,
    NAMED,
    Home,
    expire_without_spark,
)
from lakehouse_tests.privacy.test_erase import DONE
from lakehouse_tests.processes import KILLED, kill_this_process, start

pytestmark = pytest.mark.e2e


def erase_and_die() -> None:
    """Erase from a small home, in a process that is killed once the rows of a table are deleted."""
    delete_rows = erasure_steps.delete_rows

    def dying(*arguments: Any, **options: Any) -> None:
        delete_rows(*arguments, **options)
        kill_this_process()

    setattr(expire_snapshots, "_call_procedure", expire_without_spark)  # noqa: B010
    setattr(erasure_steps, "delete_rows", dying)  # noqa: B010
    Home(Settings.from_env()).erase(*NAMED, now=True)


def test_killed_within_a_step_the_next_call_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expire_snapshots, "_call_procedure", expire_without_spark)
    home = Home(settings_at(tmp_path / "home"))
    home.fill()
    child = start(home.settings.home, erase_and_die)
    assert child.status() == KILLED, child.said

    erasure = home.erase(now=True)

    assert erasure.request.state == "verified", (
        erasure.search_report and erasure.search_report.as_text()
    )
    assert home.actions() == DONE
    assert home.files_with(ANNA, ANNA_BEFORE, HERS) == []
