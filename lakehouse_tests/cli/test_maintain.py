"""`lakehouse maintain`, and the sensor beside it: what is due is done, and shown."""

from pathlib import Path

import dagster as dg
import pytest

from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.upkeep_results import JOB
from lakehouse_tests.cli.conftest import Lakehouse
from lakehouse_tests.cli.outcomes import records
from lakehouse_tests.conftest import settings_at

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

FRUITS = "silver.fruits"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home of the test's own: upkeep deletes files."""
    return tmp_path / "home"


def insert_small_files(lakehouse: Lakehouse, files: int) -> None:
    rows = [
        f"INSERT INTO {FRUITS} VALUES ({number}, 'Fruit {number}', true, current_timestamp())"
        for number in range(9000, 9000 + files)
    ]
    assert lakehouse("sql", "--write", ";".join(rows)).code == 0


def content(lakehouse: Lakehouse) -> list[str]:
    query = f"SELECT * FROM {FRUITS} ORDER BY fruit"
    return lakehouse("sql", query, "--format", "csv").out


@pytest.mark.long
@pytest.mark.usefixtures("sample_fruits")
def test_a_dry_run_shows_due_steps(lakehouse: Lakehouse) -> None:
    insert_small_files(lakehouse, 6)

    steps = {
        step["step"]: step
        for step in records(lakehouse("maintain", FRUITS, "--dry-run", "--format", "json"))
    }
    assert (steps["compact"]["due"], steps["compact"]["fewer_files"]) == (True, 6)
    assert not steps["expire_snapshots"]["due"]
    table = lakehouse("maintain", FRUITS, "--dry-run")
    assert "6 fewer files" in next(line for line in table.out if "compact" in line)


@pytest.mark.long
@pytest.mark.usefixtures("sample_fruits")
def test_due_steps_are_run_and_recorded(lakehouse: Lakehouse, home: Path) -> None:
    insert_small_files(lakehouse, 6)
    rows = content(lakehouse)

    ran = lakehouse("maintain", FRUITS)

    assert (ran.code, ran.out[0]) == (0, f"{FRUITS}: compact done, 8 to 2 files")
    assert content(lakehouse) == rows
    recorded = lakehouse(
        "sql",
        "SELECT outcome, fewer_files FROM monitoring.upkeep_runs"
        f" WHERE step = 'compact' AND table_name = '{FRUITS}'",
        "--format",
        "csv",
    )
    assert recorded.out[1:] == ["done,6"]
    with open_instance(settings_at(home)) as instance:
        (run,) = instance.get_run_records(dg.RunsFilter(job_name=JOB))
        assert run.dagster_run.is_success
    assert lakehouse("maintain", FRUITS).out == ["No upkeep is due of 1 table."]
