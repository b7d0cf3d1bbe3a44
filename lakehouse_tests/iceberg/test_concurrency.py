"""Processes write one table of each mode at once; a reader sees only complete states."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lakehouse_tests.examples import repeated
from lakehouse_tests.iceberg.contest import (
    CONTESTS,
    Contest,
    check_conflicts,
    check_history,
    check_rows,
    hold,
)

MANY_LOOKS = 5


@pytest.fixture(scope="module", params=repeated(CONTESTS, tried=["many hosts"]))
def contest(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Contest:
    """A short contest; `make soak` holds the other one too, and longer ones."""
    folder = tmp_path_factory.mktemp("contest")
    return hold(folder, [request.param], writers=2, rounds=1)[request.param]


def check_looks(contest: Contest) -> None:
    """See that the reader read, which checks each state that it sees."""
    assert contest.looks > MANY_LOOKS


CHECKS = (check_rows, check_history, check_conflicts, check_looks)


@pytest.mark.scenario
@pytest.mark.e2e
@pytest.mark.parametrize("check", CHECKS)
def test_concurrent_writers_lose_nothing(
    contest: Contest, check: Callable[[Contest], None]
) -> None:
    check(contest)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_twenty_five_commits_of_each_of_four_writers_to_each_table(tmp_path: Path) -> None:
    for contest in hold(tmp_path, writers=4, rounds=25).values():
        for check in CHECKS:
            check(contest)
