"""Processes write one table of each mode at once; a reader sees only complete states."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lakehouse_tests.iceberg.contest import (
    Contest,
    check_conflicts,
    check_history,
    check_rows,
    hold,
)

MANY_LOOKS = 5


@pytest.fixture(scope="module")
def contest(tmp_path_factory: pytest.TempPathFactory) -> Contest:
    """A short contest; `make soak` holds a longer one."""
    return hold(tmp_path_factory.mktemp("contest"), writers=2, rounds=1)


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
def test_eight_commits_of_each_of_three_writers_to_each_table(tmp_path: Path) -> None:
    contest = hold(tmp_path, writers=3, rounds=8)
    for check in CHECKS:
        check(contest)
