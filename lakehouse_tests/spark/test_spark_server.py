"""Which Spark a process has where `lakehouse dev` keeps one warm, and starts it again."""

import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest

from lakehouse.settings import Settings
from lakehouse.spark.processes import Process
from lakehouse.spark.spark_server import SparkServer, forget, publish, with_server

pytestmark = pytest.mark.unit


@pytest.fixture
def server(settings: Settings) -> Iterator[SparkServer]:
    """A server at a port that something listens on, for an existing home."""
    settings.make_home()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield SparkServer(listener.getsockname()[1], "token", Process.current())


def test_a_process_keeps_the_server_while_it_restarts(settings, server) -> None:
    publish(settings, server)
    assert with_server(settings).spark_remote == server.remote
    forget(settings, server)
    assert with_server(settings).spark_remote == server.remote


def test_a_process_with_a_spark_of_its_own_keeps_it(settings, server) -> None:
    assert with_server(settings) == settings
    publish(settings, server)
    assert with_server(settings) == settings


@pytest.mark.parametrize(
    "change",
    [{"spark_remote": "sc://spark:15002"}, {"deployment": "aws", "bucket": "lake"}],
    ids=["a named Spark", "another deployment"],
)
def test_another_spark_or_deployment_does_not_use_it(settings, server, change) -> None:
    """It has neither the file system nor the credentials of another deployment."""
    publish(settings, replace(server, deployment="local", master="local[*]"))
    other = replace(settings, **change)
    assert with_server(other) == other


@pytest.mark.parametrize(
    ("asked", "of_server", "is_used"),
    [
        ("spark://master:7077", "local[*]", False),
        ("spark://master:7077", "spark://master:7077", True),
        ("local[2]", "local[*]", True),
        # What is not set asks for none: the server is in front of the cluster for all.
        (Settings.spark_master, "spark://master:7077", True),
        ("local[2]", "spark://master:7077", False),
        ("spark://master:7077", "", True),
    ],
)
def test_a_server_is_used_where_no_other_master_is_named(
    settings, server, asked, of_server, is_used
) -> None:
    server = replace(server, deployment="local", master=of_server)
    publish(settings, server)
    asking = replace(settings, spark_master=asked)

    found = with_server(asking)

    assert (found.spark_remote == server.remote) is is_used
    assert is_used or found == asking
