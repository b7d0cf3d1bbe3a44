"""What a Spark Connect server lacks is said in one line, and what it is to be started with is
printed.
"""

from collections.abc import Mapping

import pytest

from lakehouse.spark import jars
from lakehouse.spark.connect_server import server_configuration
from lakehouse_tests.cli.commands import LAKEHOUSE
from lakehouse_tests.cluster.connect_server import connect_server
from lakehouse_tests.cluster.spark_cluster import on_account
from lakehouse_tests.processes import start_command

pytestmark = [pytest.mark.e2e, pytest.mark.soak]
JARS, EXTENSIONS, S3 = "spark.jars", "spark.sql.extensions", "spark.hadoop.fs.s3.impl"


def without(configuration: Mapping[str, str], name: str) -> dict[str, str]:
    """Return a configuration without what begins with a name."""
    return {key: value for key, value in configuration.items() if key != name}


@pytest.mark.parametrize(
    ("lack", "command", "said"),
    [
        pytest.param(
            EXTENSIONS,
            ["sql", "SELECT 1"],
            "lacks Iceberg's extensions (spark.sql.extensions)",
        ),
        pytest.param(S3, ["doctor"], "lacks a file system for s3://"),
    ],
)
def test_what_a_server_lacks_is_said_in_one_line(
    cluster, aws_settings, home, lack, command, said
):
    whole = server_configuration(aws_settings, str(jars.jar_dir(aws_settings).expanduser()))
    with connect_server(cluster, aws_settings, without(whole, lack)) as server:
        env = on_account(aws_settings) | server.client_environment
        ran = start_command([LAKEHOUSE, *command], home, env=env)

        assert ran.status() == 1
        (line,) = [line for line in ran.said.splitlines() if " lacks " in line]
        assert said in line
        assert "`lakehouse connect-conf` prints what the server is to be started with." in line
        assert "\tat " not in ran.said
        told = [other for other in ran.said.splitlines() if not other.endswith(" …")]
        assert command == ["doctor"] or told == [line]
