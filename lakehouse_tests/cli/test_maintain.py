"""`lakehouse maintain`, and the sensor beside it: what is due is done, and shown."""

import json
from pathlib import Path

import dagster as dg
import pytest

from lakehouse import definitions
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.instance import open_instance
from lakehouse.orchestration.upkeep_results import JOB
from lakehouse.upkeep.upkeep_sensor import SENSOR
from lakehouse_tests.cli.conftest import Lakehouse
from lakehouse_tests.conftest import settings_at

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

FRUITS = "silver.fruits"
REFUSED_LONG_AGO = f"refused_{1_600_000_000_000:012x}{'0' * 20}"


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
def test_what_is_due_is_planned_done_kept_and_shown(lakehouse: Lakehouse, home: Path) -> None:
    insert_small_files(lakehouse, 6)
    rows = content(lakehouse)

    planned = lakehouse("maintain", FRUITS, "--dry-run", "--format", "json")
    assert planned.code == 0
    steps = {step["step"]: step for step in json.loads("\n".join(planned.out))}
    assert steps["compact"]["due"]
    assert steps["compact"]["fewer_files"] == 6
    assert not steps["expire_snapshots"]["due"]
    table = lakehouse("maintain", FRUITS, "--dry-run")
    assert "6 fewer files" in next(line for line in table.out if "compact" in line)

    ran = lakehouse("maintain", FRUITS)
    assert (ran.code, ran.err) == (0, [])
    assert ran.out[0] == f"{FRUITS}: compact done, 8 to 2 files"
    assert content(lakehouse) == rows

    kept = lakehouse(
        "sql",
        "SELECT outcome, promised_fewer_files, fewer_files FROM monitoring.upkeep_runs"
        f" WHERE step = 'compact' AND table_name = '{FRUITS}'",
        "--format",
        "csv",
    )
    assert kept.out[1:] == ["done,6,6"]
    measured = lakehouse(
        "sql", "SELECT table_name, data_files FROM monitoring.table_health", "--format", "csv"
    )
    assert measured.out[1:] == [f"{FRUITS},2"]
    with open_instance(settings_at(home)) as instance:
        (run,) = instance.get_run_records(dg.RunsFilter(job_name=JOB))
        assert run.dagster_run.is_success
        observed = instance.fetch_observations(asset_key(FRUITS), limit=10).records
        shown = [record.asset_observation.metadata for record in observed]
    outcomes = {entry["upkeep/outcome"].value for entry in shown if "upkeep/outcome" in entry}
    assert "done" in outcomes

    assert lakehouse("maintain", FRUITS).out == ["No upkeep is due of 1 table."]
    again = lakehouse("maintain", FRUITS, "--format", "json")
    assert (again.code, again.out) == (0, ["[]"])


def test_a_table_that_is_not_there_is_named(lakehouse: Lakehouse) -> None:
    assert lakehouse("maintain").out == ["No upkeep is due of 0 tables."]
    ran = lakehouse("maintain", FRUITS)
    assert ran.code == 1
    assert ran.err[0].startswith(f"lakehouse: {FRUITS} is declared, and not there yet.")
    assert lakehouse("maintain", "silver.nothing").code == 2


@pytest.mark.long
@pytest.mark.usefixtures("sample_fruits")
def test_the_sensor_asks_once_for_what_is_due(home: Path) -> None:
    settings = settings_at(home)
    project = definitions.definitions(lambda: settings)
    sensor = project.resolve_sensor_def(SENSOR)
    table = Catalog.of(settings).load(FRUITS)
    with open_instance(settings) as instance:

        def look(cursor: str | None = None) -> dg.SensorResult | dg.RunRequest | dg.SkipReason:
            context = dg.build_sensor_context(
                instance, cursor=cursor, repository_def=project.get_repository_def()
            )
            asked = sensor(context)
            cursors.append(context.cursor)
            return asked

        cursors: list[str | None] = [None]
        assert isinstance(look(), dg.SkipReason)
        again = look(cursors[-1])
        assert isinstance(again, dg.SkipReason)
        assert "No table changed" in str(again.skip_message)

        snapshot = table.current_snapshot()
        assert snapshot is not None
        with table.manage_snapshots() as refs:
            refs.create_branch(snapshot.snapshot_id, REFUSED_LONG_AGO)
        asked = look(cursors[-1])
        assert isinstance(asked, dg.RunRequest)

        job = project.resolve_job_def(JOB)
        assert job.execute_in_process(asked.run_config, instance=instance).success
    assert REFUSED_LONG_AGO not in Catalog.of(settings).load(FRUITS).metadata.refs
