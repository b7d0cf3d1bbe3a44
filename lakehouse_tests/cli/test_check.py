"""`lakehouse check`: every check of what readers see, and nothing written."""

from pathlib import Path

import pytest

from lakehouse.orchestration.runs.instance import open_instance
from lakehouse_tests.conftest import settings_at

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def snapshots(lakehouse) -> list[str]:
    return lakehouse(
        "sql", "SELECT snapshot_id FROM silver.fruits.snapshots", "--format", "csv"
    ).out


@pytest.mark.long
@pytest.mark.usefixtures("sample_fruits")
def test_all_checks_are_evaluated_and_nothing_is_written(lakehouse, home: Path) -> None:
    before = snapshots(lakehouse)
    ran = lakehouse("check")
    assert (ran.code, ran.err) == (0, [])
    assert "silver.fruits: 9 of 9 checks hold" in ran.out
    assert all(" hold" in line or line.endswith(": no checks") for line in ran.out)
    assert snapshots(lakehouse) == before
    with open_instance(settings_at(home)) as instance:
        assert instance.get_runs(limit=1)[0].is_success


@pytest.mark.long
@pytest.mark.usefixtures("sample_fruits")
def test_a_check_that_fails_is_shown_and_named(lakehouse) -> None:
    row = (
        "(1, 'Apple', true, TIMESTAMP '2026-01-01 00:00:00'), (2, 'Banana', true, NULL), (3,"
        " NULL, true, NULL)"
    )
    assert lakehouse("sql", "--write", f"INSERT INTO silver.fruits VALUES {row}").code == 0
    ran = lakehouse("check", "lakehouse.silver.fruits")
    assert ran.code == 1
    table, *failed = ran.out
    assert table == "silver.fruits: 5 of 9 checks hold"
    assert "  WARN not_null_fruit: fruit is not null: 1 of 158 rows break it." in failed
    assert len(ran.err) == 3
    assert (
        "lakehouse: silver.fruits: check unique_fruit failed: fruit is unique: 1 of 158 rows"
        " break it." in ran.err
    )
