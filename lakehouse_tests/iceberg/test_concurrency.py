"""Processes with a JVM of their own write one table of each mode at once, and a reader sees
only whole states.
"""

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


@pytest.mark.scenario
@pytest.mark.e2e
def test_every_row_is_there_once(contest: Contest) -> None:
    check_rows(contest)


@pytest.mark.scenario
@pytest.mark.e2e
def test_main_went_from_each_snapshot_to_its_child(contest: Contest) -> None:
    check_history(contest)


@pytest.mark.scenario
@pytest.mark.e2e
def test_a_reader_saw_published_states_only(contest: Contest) -> None:
    """What the reader sees is checked while it looks; here it is seen that it did look."""
    assert contest.looks > MANY_LOOKS


@pytest.mark.scenario
@pytest.mark.e2e
def test_writers_get_in_each_others_way_where_they_share_no_locks(contest: Contest) -> None:
    check_conflicts(contest)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_twenty_five_commits_of_each_of_four_writers_to_each_table(tmp_path: Path) -> None:
    for contest in hold(tmp_path, writers=4, rounds=25).values():
        check_rows(contest)
        check_history(contest)
        assert contest.looks > MANY_LOOKS
        check_conflicts(contest)
