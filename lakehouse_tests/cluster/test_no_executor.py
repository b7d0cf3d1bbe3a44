"""Executors that an idle server gives to other commands."""

from pathlib import Path

import pytest

from lakehouse_tests.cli.commands import LAKEHOUSE
from lakehouse_tests.cluster.connect_server import connect_server, printed_configuration
from lakehouse_tests.cluster.spark_cluster import on_account
from lakehouse_tests.processes import engine_of_process, start, start_command, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.soak]
ONE = [LAKEHOUSE, "sql", "SELECT 1 AS one"]


def work_until_opened(gate: str) -> None:
    """Ask for more tasks than one executor has cores, which end when a gate is opened."""
    from pyspark.sql.functions import udf

    def wait(value: int) -> int:
        # Runs in a worker of Spark, which imports nothing of the tests.
        from time import sleep

        while not Path(gate).exists():
            sleep(0.05)
        return value

    rows = engine_of_process().spark.range(0, 4, 1, 4)
    rows.select(udf(wait, "bigint", useArrow=False)("id")).collect()


SOON_IDLE = {
    "spark.dynamicAllocation.executorIdleTimeout": "5s",
    "spark.dynamicAllocation.shuffleTracking.timeout": "5s",
}


def test_an_idle_server_as_connect_conf_has_it_started_gives_its_executors_to_the_next_command(
    cluster, aws_settings, home, gate, tmp_path
):
    """Without a bound: nobody told it of the cluster's cores, and it takes all of them."""
    printed = printed_configuration(aws_settings)
    assert "spark.cores.max" not in printed

    def held() -> list[int]:
        return [application["cores"] for application in cluster.state()["activeapps"]]

    with connect_server(cluster, aws_settings, printed | SOON_IDLE) as server:
        env = on_account(aws_settings) | server.client_environment
        client = start(home, work_until_opened, env=env, gate=str(gate))
        wait_for(lambda: held() == [2] or not client.is_alive, "a server with all cores", 300)
        gate.touch()
        assert client.result() is None
        beside = start_command(
            ONE, tmp_path / "beside" / "home", env=cluster.client_environment
        )
        assert beside.status() == 0, beside.said
        assert "(1 row)" in beside.said
        wait_for(lambda: held() == [0], "a server that holds no core")
