"""Failing workers and clients; one cluster, Connect server and account for the file."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from lakehouse.settings import Settings
from lakehouse_tests.cli.commands import LAKEHOUSE, lines_of
from lakehouse_tests.cli.test_python_functions import begin_words_project
from lakehouse_tests.cluster.connect_server import (
    ConnectServer,
    connect_server,
    printed_configuration,
)
from lakehouse_tests.cluster.disturbed_ingest import (
    ingest_and_give_up_soon,
    ingest_while_publishing_waits,
    ingest_while_readers_wait,
)
from lakehouse_tests.cluster.gates import wait_until_asked
from lakehouse_tests.cluster.killed_workers import BY_EXECUTORS, kill_working
from lakehouse_tests.cluster.lake import Lake
from lakehouse_tests.cluster.slow_ingest import FILES, check_once, deliver, ingest_slowly
from lakehouse_tests.cluster.spark_cluster import SparkCluster, on_account
from lakehouse_tests.cluster.test_executor_archive import BARE_PYTHON
from lakehouse_tests.cluster.test_no_executor import ONE
from lakehouse_tests.conftest import on_empty_account, settings_at
from lakehouse_tests.processes import KILLED, Child, start, start_command, wait_for

pytestmark = pytest.mark.e2e
WAIT = "LAKEHOUSE_EXECUTOR_WAIT_SECONDS"
HOPELESS = {WAIT: "2"}
"""For a command that gets no executor, however long it waits."""


@pytest.fixture(scope="module")
def account(moto: str, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """An account that the tests of this file share, each with tables of its own."""
    return on_empty_account(moto, settings_at(tmp_path_factory.mktemp("account") / "home"))


@pytest.fixture(scope="module")
def server(mortal_cluster: SparkCluster, account: Settings) -> Iterator[ConnectServer]:
    """A server that holds all cores of the cluster, until the last test of this file kills it."""
    # By itself Spark makes 200 partitions of a shuffle of two rows; and what is printed gives idle
    # executors back.
    given = {
        "spark.sql.shuffle.partitions": "2",
        "spark.dynamicAllocation.enabled": "false",
    }
    with connect_server(
        mortal_cluster, account, printed_configuration(account) | given
    ) as running:
        yield running


def kill_all(cluster: SparkCluster) -> None:
    """Leave a cluster no worker."""
    for worker in cluster.workers:
        if worker.process.poll() is None:
            worker.kill()
    cluster.wait_for_workers(0)


def start_two(cluster: SparkCluster) -> None:
    """Give a cluster two workers again."""
    for _ in range(2):
        cluster.start_worker()
    cluster.wait_for_workers(2)


def client_of(
    server: ConnectServer, cluster: SparkCluster, settings: Settings
) -> dict[str, str]:
    """Return what a client of a server is told."""
    return on_account(settings) | server.client_environment


@dataclass
class Fruits:
    """A lakehouse to which the tests of this file bring fruits, each a file of its own."""

    lake: Lake
    delivered: list[str] = field(default_factory=list)
    said: str = ""
    """What the first ingest said."""

    def deliver(self) -> None:
        """Put the next file into the inbox."""
        name = next(name for name in FILES if name not in self.delivered)
        deliver(self.lake, name)
        self.delivered.append(name)

    @contextmanager
    def ingest(self, function: Any, gate: Path, **env: str) -> Iterator[Child]:
        """Deliver a file, and ingest it by a function that waits at a gate."""
        self.deliver()
        told = {**self.lake.env, **env}
        child = start(self.lake.settings.home, function, env=told, gate=str(gate))
        try:
            yield child
        finally:
            child.kill()

    def check(self) -> None:
        """See that all that was delivered is in the tables, each row once."""
        check_once(self.lake, *self.delivered)


@pytest.fixture(scope="module")
def fruits(server: ConnectServer, mortal_cluster: SparkCluster, account: Settings) -> Fruits:
    """Fruits whose first file came while executors had no Python that reads files."""
    env = client_of(server, mortal_cluster, account)
    fruits = Fruits(Lake(account, env))
    fruits.deliver()
    bare = BY_EXECUTORS | {"LAKEHOUSE_EXECUTOR_PYTHON": BARE_PYTHON}
    fruits.said = Lake(account, env | bare).run("ingest", "fruits")
    return fruits


@pytest.mark.parametrize(
    ("lack", "command", "said"),
    [
        ("spark.jars", ONE, "lacks a jar or a setting of the catalog (org.apache.iceberg:"),
        pytest.param(
            "spark.hadoop.fs.s3.impl",
            [LAKEHOUSE, "doctor"],
            "lacks a file system for s3://",
            marks=pytest.mark.soak,
        ),
    ],
)
def test_what_a_server_lacks_is_said_in_one_line(
    mortal_cluster, account, home, lack, command, said
):
    # It lacks it wherever its executors are.
    alone = replace(mortal_cluster, url="local[1]")
    given = printed_configuration(account)
    del given[lack]
    with connect_server(alone, account, given) as lacking:
        env = on_account(account) | lacking.client_environment
        ran = start_command(command, home, env=env)

        assert ran.status() == 1
        (line,) = [line for line in lines_of(ran) if " lacks " in line]
        assert said in line
        assert "`lakehouse connect-conf` prints what the server is to be started with." in line
        assert command != ONE or lines_of(ran) == [line]


def test_a_command_beside_one_that_holds_all_cores_says_so_in_one_line(
    server, mortal_cluster, tmp_path
):
    env = mortal_cluster.client_environment | HOPELESS
    second = start_command(ONE, tmp_path / "second" / "home", env=env)

    assert second.status() == 1
    (line,) = lines_of(second)
    assert f"No executor came within 2 s on {mortal_cluster.url}" in line


@pytest.mark.soak
def test_the_code_of_somebody_else_runs_on_executors(server, mortal_cluster, account, tmp_path):
    root = begin_words_project(tmp_path)
    env = client_of(server, mortal_cluster, account) | BY_EXECUTORS
    lake = Lake(replace(account, home=tmp_path / "home"), env, root)
    file = tmp_path / "words.csv"
    file.write_text("word\nhey\n")
    lake.put("words", file)
    said = lake.run("ingest")

    assert "The driver read the files" not in said
    assert lake.rows("silver.words") == [{"aloud": "HEYHEY"}]


def test_where_executors_have_no_pyarrow_the_driver_reads(fruits):
    fruits.check()
    (line,) = [one for one in fruits.said.splitlines() if "The driver read the files" in one]
    assert "No module named 'pyarrow'" in line


def test_a_worker_killed_when_it_has_staged_files_has_them_read_again_and_landed_once(
    fruits, mortal_cluster, gate
):
    with fruits.ingest(ingest_while_readers_wait, gate, **BY_EXECUTORS) as child:
        kill_working(mortal_cluster, gate, child)
        assert child.result() == 0

    assert "The driver read the files" not in child.said
    fruits.check()


def test_without_workers_a_run_publishes_and_continues_with_new_ones(
    fruits, mortal_cluster, gate, tmp_path
):
    landed = len(fruits.lake.rows("bronze.raw_fruits"))
    with fruits.ingest(ingest_while_publishing_waits, gate) as child:
        wait_until_asked(gate, child)
        kill_all(mortal_cluster)
        try:
            (gate / "opened").touch()
            wait_for((gate / "published").exists, "an append that is published", 300)
            assert len(fruits.lake.rows("bronze.raw_fruits")) > landed
            env = {**fruits.lake.env, **HOPELESS}
            other = start_command(ONE, tmp_path / "other" / "home", env=env)
            assert other.status() == 1
        finally:
            start_two(mortal_cluster)
        assert child.result() == 0
    (line,) = lines_of(other)
    assert f"No executor came within 2 s on {mortal_cluster.url}; " in line
    fruits.check()


@pytest.mark.soak
def test_a_killed_server_is_one_line_and_a_killed_driver_frees_its_cores(
    fruits, server, mortal_cluster, account, gates, gate
):
    with fruits.ingest(ingest_and_give_up_soon, gate) as child:
        wait_until_asked(gate, child)
        server.part.kill()
        assert child.result() == 1
    (line,) = [line for line in child.said.splitlines() if "The Spark server" in line]
    assert "The Spark server ended in the middle of it, or was restarted." in line
    assert "Traceback" not in child.said and "\tat " not in child.said
    mortal_cluster.wait_until_free()

    # Those after it have no server.
    fruits.lake = replace(
        fruits.lake, env=on_account(account) | mortal_cluster.client_environment
    )
    other_gate = gates / f"{gate.name}-driver"
    with fruits.ingest(ingest_slowly, other_gate) as child:
        wait_until_asked(other_gate, child)
        wait_for(mortal_cluster.working, "a running task", 300)
        child.kill()
    assert child.status() == KILLED
    mortal_cluster.wait_until_free()

    fruits.lake.run("ingest", "fruits")

    fruits.check()
