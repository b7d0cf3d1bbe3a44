"""A process that erases is killed: the next call ends in the same state, and the audit table has
each thing once.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lakehouse.iceberg.upkeep import expire_snapshots
from lakehouse.privacy.erasure import Erasure
from lakehouse_tests.conftest import settings_at
from lakehouse_tests.privacy.an_erasure import (
    ANNA,
    ANNA_BEFORE,
    HERS,
    Home,
    expire_without_spark,
)
from lakehouse_tests.privacy.story.customers import Customers
from lakehouse_tests.privacy.story.deaths import (
    AFTER,
    WITHIN,
    erase_and_die,
    erase_without_spark_and_die,
)
from lakehouse_tests.privacy.story.everywhere import REQUEST, Everywhere
from lakehouse_tests.privacy.story.home_copy import HomeCopy
from lakehouse_tests.privacy.test_erase import DONE
from lakehouse_tests.processes import KILLED, start

pytestmark = pytest.mark.e2e


def test_killed_after_the_rows_of_a_table_the_next_call_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expire_snapshots, "_call_procedure", expire_without_spark)
    home = Home(settings_at(tmp_path / "home"))
    home.fill()
    child = start(
        home.settings.home, erase_without_spark_and_die, at="after the rows of a table"
    )
    assert child.status() == KILLED, child.said

    erasure = home.erase(now=True)

    assert erasure.request.state == "verified", erasure.proof and erasure.proof.as_text()
    assert home.actions() == DONE
    assert home.files_with(ANNA, ANNA_BEFORE, HERS) == []


@dataclass(frozen=True)
class State:
    """What an erasure leaves."""

    request: str
    rows: Mapping[str, Any]
    files: set[tuple[str, int]]
    actions: Counter[str]
    others: Mapping[str, Counter[str]]


def state_of(there: Everywhere, erasure: Erasure) -> State:
    """Return what there is now."""
    record = erasure.record
    assert there.refs_with_them(there.persons) == set()
    return State(
        erasure.request.state,
        record.rows,
        {(file.key, file.rows) for file in record.files},
        there.actions(),
        there.rows_of_others(),
    )


@pytest.fixture(scope="module")
def filled(
    spark, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Everywhere, HomeCopy]]:
    """A home that has customers everywhere, and a copy of it."""
    settings = settings_at(tmp_path_factory.mktemp("killed") / "home")
    there = Everywhere(settings, Customers(40, 3), visits=())
    there.fill()
    yield there, HomeCopy(settings.home)


@pytest.fixture(scope="module")
def undisturbed(filled: tuple[Everywhere, HomeCopy]) -> State:
    """What an erasure leaves that nobody kills."""
    there, _ = filled
    return state_of(there, there.erase(now=True))


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("at", [*AFTER, *WITHIN])
def test_killed_anywhere_the_next_call_ends_in_the_same_state(
    filled: tuple[Everywhere, HomeCopy], undisturbed: State, at: str
) -> None:
    there, copy = filled
    copy.restore()
    people = [f"{one.column}={one.value}" for one in there.named]
    arguments = [*people, "--request", REQUEST, "--now"]
    child = start(there.settings.home, erase_and_die, at=at, arguments=arguments)
    assert child.status() == KILLED, child.said

    erasure = there.erase(now=True)

    assert erasure.request.state == "verified", erasure.proof and erasure.proof.as_text()
    assert state_of(there, erasure) == undisturbed
