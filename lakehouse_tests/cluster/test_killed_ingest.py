"""An ingest whose driver, client or Connect server is killed in the middle: the next one does what
is left, and nothing stands twice.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import pytest

from lakehouse.runtime import jars
from lakehouse.runtime.connect_server import server_configuration
from lakehouse.settings import Settings
from lakehouse_tests.cli.commands import free_port
from lakehouse_tests.cluster.connect_server import connect_server
from lakehouse_tests.cluster.gates import wait_until_asked
from lakehouse_tests.cluster.lake import Lake, lake_on
from lakehouse_tests.cluster.slow_ingest import (
    check_once,
    deliver,
    ingest_slowly,
    run_statuses,
)
from lakehouse_tests.cluster.spark_cluster import SparkCluster, on_account
from lakehouse_tests.processes import KILLED, Child, start, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.soak]
FAILED, SUCCEEDED = dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.SUCCESS


@contextmanager
def second_ingest(lake: Lake, cluster: SparkCluster, gate: Path) -> Iterator[Child]:
    """Ingest a first file, and a second one up to a task that waits at a gate."""
    deliver(lake, "1.csv")
    lake.run("ingest", "fruits")
    deliver(lake, "2.csv")
    child = start(lake.settings.home, ingest_slowly, env={**lake.env}, gate=str(gate))
    try:
        wait_until_asked(gate, child)
        wait_for(cluster.working, "a running task", 300)
        yield child
    finally:
        child.kill()


def test_a_killed_driver_frees_its_cores_and_the_next_ingest_does_what_is_left(
    cluster: SparkCluster, aws_settings: Settings, gate: Path
) -> None:
    with lake_on(cluster, aws_settings, "classic") as lake:
        with second_ingest(lake, cluster, gate) as child:
            child.kill()
        assert child.status() == KILLED
        cluster.wait_until_free()

        lake.run("ingest", "fruits")

        check_once(lake, "1.csv", "2.csv")
        assert run_statuses(lake) == [SUCCEEDED, FAILED, SUCCEEDED]


def test_what_the_server_of_a_killed_client_commits_later_harms_nobody(
    cluster: SparkCluster, aws_settings: Settings, gate: Path
) -> None:
    with lake_on(cluster, aws_settings, "connect") as lake:
        with second_ingest(lake, cluster, gate) as child:
            child.kill()
        assert child.status() == KILLED

        # The task of the dead one has one of the two cores.
        lake.run("ingest", "fruits")
        assert cluster.working()
        (gate / "opened").touch()
        wait_for(lambda: not cluster.working(), "the end of the task")
        deliver(lake, "3.csv")
        lake.run("ingest", "fruits")

        check_once(lake, "1.csv", "2.csv", "3.csv")
        assert run_statuses(lake) == [SUCCEEDED, FAILED, SUCCEEDED, SUCCEEDED]


def test_a_killed_server_is_one_line_and_the_next_ingest_by_a_new_one_does_what_is_left(
    cluster: SparkCluster, aws_settings: Settings, gate: Path
) -> None:
    printed = server_configuration(aws_settings, str(jars.jar_dir(aws_settings).expanduser()))
    port = free_port()
    with connect_server(cluster, aws_settings, printed, port=port) as server:
        lake = Lake(aws_settings, on_account(aws_settings) | server.client_environment)
        with second_ingest(lake, cluster, gate) as child:
            server.part.kill()
            assert child.result() == 1
    (line,) = [line for line in child.said.splitlines() if "The Spark server" in line]
    assert "The Spark server ended in the middle of it, or was restarted." in line
    assert "Traceback" not in child.said and "\tat " not in child.said
    cluster.wait_until_free()

    with connect_server(cluster, aws_settings, printed, port=port):
        lake.run("ingest", "fruits")

    check_once(lake, "1.csv", "2.csv")
    assert run_statuses(lake) == [SUCCEEDED, FAILED, SUCCEEDED]
