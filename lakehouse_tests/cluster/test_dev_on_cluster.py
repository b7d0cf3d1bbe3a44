"""`lakehouse dev` puts its warm Spark in front of the cluster, and commands beside it share that."""

import pytest

from lakehouse.spark.spark_server import find
from lakehouse_tests.cli.commands import LAKEHOUSE, free_port
from lakehouse_tests.processes import start_command, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.soak]


def test_commands_beside_dev_are_no_applications_of_their_own(cluster, settings, home):
    env = cluster.client_environment
    dev = start_command([LAKEHOUSE, "dev", "--port", str(free_port())], home, env=env)
    try:
        wait_for(lambda: find(settings) or not dev.is_alive, "a warm Spark", 300)
        assert dev.is_alive, dev.said
        command = start_command([LAKEHOUSE, "sql", "SELECT 1 AS one"], home, env=env)
        assert command.status() == 0, command.said
        assert "(1 row)" in command.said
        assert len(cluster.state()["activeapps"]) == 1
    finally:
        dev.process.terminate()
        dev.status()
