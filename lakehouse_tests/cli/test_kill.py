"""After a killed ingest, the next one has the same result as without the kill."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from lakehouse.cli.program import run
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.ingestion import archive
from lakehouse.settings import Settings
from lakehouse_tests.assets.conftest import Fruits
from lakehouse_tests.processes import KILLED, kill_this_process, start

pytestmark = pytest.mark.e2e
FAILED, SUCCEEDED = dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.SUCCESS


def fruits_on(home: Path) -> Fruits:
    """Return the pipeline on a home after one ingest, with three waiting files."""
    fruits = Fruits(replace(Settings.from_env(), home=home), "fruits")
    fruits.put("a.csv", "1,Apple,false", "2,Kiwi,true")
    fruits.ingest()
    fruits.put("b.csv", "3,Apple,true", "x,Fig,false", second=1)
    fruits.put("c.csv", "4,Plum,false", second=2)
    fruits.put("d.csv", "5,Plum,true", "6,Lime,false", second=3)
    return fruits


def ingest_and_die() -> int:
    """Ingest what waits as the command does, and die once the first file is archived."""
    move_once = archive.move_once

    def dying(*arguments: Any, **options: Any) -> None:
        move_once(*arguments, **options)
        kill_this_process()

    setattr(archive, "move_once", dying)  # noqa: B010
    return run(("ingest", "fruits"))


@pytest.fixture
def killed(spark, tmp_path: Path) -> Fruits:
    """A home on which an ingest was killed."""
    fruits = fruits_on(tmp_path / "home")
    child = start(fruits.settings.home, ingest_and_die)
    try:
        assert child.status() == KILLED, child.said[-3000:]
        return fruits
    finally:
        child.kill()


@pytest.fixture(scope="module")
def undisturbed(spark, tmp_path_factory) -> dict[str, Any]:
    """What there is where no ingest is killed."""
    fruits = fruits_on(tmp_path_factory.mktemp("undisturbed") / "home")
    assert fruits.ingest().success
    return state(fruits)


@pytest.mark.scenario
def test_the_next_ingest_ends_as_if_nobody_had_died(killed, undisturbed):
    assert killed.ingest().success

    assert state(killed) == undisturbed
    runs = killed.recorded(lambda instance: [run.status for run in instance.get_runs()])
    assert runs == [SUCCEEDED, FAILED, SUCCEEDED]


def state(fruits: Fruits) -> dict[str, Any]:
    """Return rows, commits, branches, and the places of files."""
    home = fruits.settings.home
    archived = [path.name for path in (home / "archive").rglob("*") if path.is_file()]
    waiting = [path.name for path in (home / "inbox").rglob("*") if path.is_file()]
    # A killed run has metrics too.
    tables = [
        name for name in fruits.engine.catalog.tables() if not name.startswith("monitoring.")
    ]
    return {name: table_state(fruits, name) for name in tables} | {
        "archived": sorted(archived),
        "waiting": waiting,
    }


def table_state(fruits: Fruits, name: str) -> dict[str, Any]:
    """Return what a user can see of a table, but for the moments at which things happened."""
    history = read_history(fruits.engine, name)
    frame = fruits.engine.spark.table(name)
    moments = [
        field.name
        for field in frame.schema.fields
        if field.dataType.simpleString() == "timestamp"
    ]
    commits = [found for found in history.line if found.commit]
    return {
        "rows": sorted(map(repr, frame.drop(*moments).collect())),
        "commits": [
            (found.commit.kind, found.operation, found.count("added-records"))
            for found in commits
        ],
        "refs": set(history.refs),
    }
