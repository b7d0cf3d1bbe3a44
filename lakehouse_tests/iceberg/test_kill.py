"""A process is killed during a write: the next run ends as if nothing had happened."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.metadata.snapshots import Snapshot, read_history
from lakehouse.orchestration.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse_tests.iceberg.kills import (
    DEATHS,
    EVOLVING,
    LANDED,
    LATEST,
    WIDENED,
    write_and_be_interrupted,
    write_and_die,
    write_first,
    write_second,
    write_slowly_and_die,
)
from lakehouse_tests.processes import KILLED, start, wait_for
from lakehouse_tests.spark_server import running_server

pytestmark = pytest.mark.e2e
WITH_A_JVM = ("between publishing and dropping the branch", EVOLVING)
"""Those that take their JVM with them; the others are clients of a server that lives on."""
NAMES = (LANDED.name, f"{LANDED.name}_quarantine", LATEST.name)


def engine_on(home: Path) -> Engine:
    return open_engine(replace(Settings.from_env(), home=home))


@pytest.fixture(scope="module")
def spark_server(tmp_path_factory) -> Iterator[str]:
    with running_server(
        replace(Settings.from_env(), home=tmp_path_factory.mktemp("server"))
    ) as remote:
        yield remote


@pytest.fixture
def killed(spark, spark_server, tmp_path: Path, at: str) -> Path:
    home = tmp_path / "home"
    write_first(engine_on(home))
    child = start(home, write_and_die, env=_env(at, spark_server), at=at)
    try:
        assert child.status() == KILLED, f"{at}: {child.said[-3000:]}"
        return home
    finally:
        child.kill()


def _env(at: str, spark_server: str) -> dict[str, str]:
    return {} if at in WITH_A_JVM else {"SPARK_REMOTE": spark_server}


@pytest.fixture(scope="module")
def undisturbed(spark, tmp_path_factory) -> dict[str, dict[str, Any]]:
    """What the tables are where nobody dies, for each declaration that is written."""
    states = {}
    for kind, table in (("as it was", LANDED), ("widened", WIDENED)):
        engine = engine_on(tmp_path_factory.mktemp("undisturbed") / "home")
        write_first(engine)
        write_second(engine, table)
        states[kind] = _states(engine)
    return states


@pytest.mark.parametrize("at", DEATHS)
def test_the_next_run_ends_as_if_nobody_had_died(killed: Path, undisturbed, at: str) -> None:
    engine = engine_on(killed)
    for name in (LANDED.name, LATEST.name):
        with table_lock(engine, name, wait_seconds=0):
            pass

    write_second(engine, WIDENED if at == EVOLVING else LANDED)

    assert _states(engine) == undisturbed["widened" if at == EVOLVING else "as it was"]


def _states(engine: Engine) -> dict[str, Any]:
    return {name: _state(engine, name) for name in NAMES}


def _state(engine: Engine, name: str) -> dict[str, Any]:
    history = read_history(engine, name)
    columns = [
        column for column in engine.spark.table(name).columns if column != "_quarantined_at"
    ]
    commits = [found for found in history.line if found.commit]
    return {
        "rows": sorted(map(repr, engine.spark.table(name).select(*columns).collect())),
        "commits": [
            (found.commit.kind, found.operation, found.count("added-records"))
            for found in commits
        ],
        "refs": set(history.refs),
    }


@pytest.mark.parametrize("next_run", ["after the late commit", "before the late commit"])
def test_a_client_dies_and_its_server_commits_later(
    spark_server, undisturbed, tmp_path: Path, next_run: str
) -> None:
    home, gate = tmp_path / "home", tmp_path / "gate"
    gate.mkdir()
    engine = engine_on(home)
    write_first(engine)
    child = start(
        home, write_slowly_and_die, env={"SPARK_REMOTE": spark_server}, gate=str(gate)
    )
    assert child.status() == KILLED, child.said[-3000:]
    (dead,) = _audit_branches(engine)
    main = read_history(engine, LANDED.name).main

    if next_run == "before the late commit":
        write_second(engine)
        assert not _audit_branches(engine)
        main = read_history(engine, LANDED.name).main
    (gate / "opened").touch()
    wait_for(lambda: _head(engine, dead) not in (None, main), "the late commit")
    assert _audit_branches(engine) == [dead]
    assert read_history(engine, LANDED.name).main == main
    write_second(engine)

    assert _states(engine) == undisturbed["as it was"]


def test_an_interrupted_process_can_go_on(undisturbed, tmp_path: Path) -> None:
    home, gate = tmp_path / "home", tmp_path / "gate"
    gate.mkdir()
    engine = engine_on(home)
    write_first(engine)

    child = start(home, write_and_be_interrupted, gate=str(gate))

    assert child.result() == ["Published", "Published"]
    assert _states(engine) == undisturbed["as it was"]


def _audit_branches(engine: Engine) -> list[str]:
    return [ref for ref in read_history(engine, LANDED.name).refs if ref.startswith("audit_")]


def _head(engine: Engine, branch: str) -> Snapshot | None:
    return read_history(engine, LANDED.name).head(branch)
