"""A process that erases is killed in the middle of a step: the next call ends in the same state."""

from pathlib import Path

import pytest

from lakehouse.iceberg.upkeep import expire_snapshots
from lakehouse_tests.conftest import settings_at
from lakehouse_tests.examples import repeated
from lakehouse_tests.privacy.an_erasure import (
    ANNA,
    ANNA_BEFORE,
    HERS,
    Home,
    expire_without_spark,
)
from lakehouse_tests.privacy.story.deaths import WITHIN, erase_and_die
from lakehouse_tests.privacy.test_erase import DONE
from lakehouse_tests.processes import KILLED, start

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("at", repeated(WITHIN, tried=["after the rows of a table"]))
def test_killed_within_a_step_the_next_call_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    monkeypatch.setattr(expire_snapshots, "_call_procedure", expire_without_spark)
    home = Home(settings_at(tmp_path / "home"))
    home.fill()
    child = start(home.settings.home, erase_and_die, at=at)
    assert child.status() == KILLED, child.said

    erasure = home.erase(now=True)

    assert erasure.request.state == "verified", erasure.proof and erasure.proof.as_text()
    assert home.actions() == DONE
    assert home.files_with(ANNA, ANNA_BEFORE, HERS) == []
