"""Processes with a JVM of their own write one table of each mode at once, and a reader sees
only whole states.
"""

from pathlib import Path

import pytest

from lakehouse_tests.iceberg.contest import CONTESTS, Contest, check_history, check_rows, hold

MANY_LOOKS = 5


@pytest.fixture(scope="module")
def contests(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Contest]:
    """Two short contests; `make soak` holds longer ones."""
    return hold(tmp_path_factory.mktemp("contests"), writers=3, rounds=2)


@pytest.mark.e2e
@pytest.mark.long
@pytest.mark.parametrize("name", CONTESTS)
def test_every_row_is_there_once(contests: dict[str, Contest], name: str) -> None:
    check_rows(contests[name])


@pytest.mark.e2e
@pytest.mark.long
@pytest.mark.parametrize("name", CONTESTS)
def test_main_went_from_each_snapshot_to_its_child(
    contests: dict[str, Contest], name: str
) -> None:
    check_history(contests[name])


@pytest.mark.e2e
@pytest.mark.long
@pytest.mark.parametrize("name", CONTESTS)
def test_a_reader_saw_published_states_only(contests: dict[str, Contest], name: str) -> None:
    """What the reader sees is checked while it looks; here it is seen that it did look."""
    assert contests[name].looks > MANY_LOOKS


@pytest.mark.e2e
@pytest.mark.long
def test_writers_that_share_locks_have_no_conflicts(contests: dict[str, Contest]) -> None:
    assert not any(contests["one host"].conflicts.values())


@pytest.mark.e2e
@pytest.mark.long
def test_writers_on_several_hosts_got_in_each_others_way(contests: dict[str, Contest]) -> None:
    """In each mode, or the others would have shown nothing of it."""
    assert all(contests["many hosts"].conflicts.values())


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_twenty_five_commits_of_each_of_four_writers_to_each_table(tmp_path: Path) -> None:
    held = hold(tmp_path, writers=4, rounds=25)
    for contest in held.values():
        check_rows(contest)
        check_history(contest)
        assert contest.looks > MANY_LOOKS
    test_writers_that_share_locks_have_no_conflicts(held)
    test_writers_on_several_hosts_got_in_each_others_way(held)
