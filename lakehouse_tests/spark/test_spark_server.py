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
def servers() -> Iterator[list[SparkServer]]:
    """Two servers, one after the other, each at a port that something listens on."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    ports = [listener.getsockname()[1] for listener in listeners]
    yield [SparkServer(port, "token", Process.current()) for port in ports]
    for listener in listeners:
        listener.close()


def test_a_process_keeps_the_server_while_it_restarts(
    settings: Settings, servers: list[SparkServer]
) -> None:
    settings.make_home()
    publish(settings, servers[0])
    assert with_server(settings).spark_remote == servers[0].remote
    forget(settings, servers[0])
    assert with_server(settings).spark_remote == servers[0].remote


def test_a_process_with_a_spark_of_its_own_keeps_it(
    settings: Settings, servers: list[SparkServer]
) -> None:
    assert with_server(settings) == settings
    settings.make_home()
    publish(settings, servers[0])
    assert with_server(settings) == settings


def test_a_spark_that_is_named_goes_before_it(
    settings: Settings, servers: list[SparkServer]
) -> None:
    settings.make_home()
    publish(settings, servers[0])
    named = replace(settings, spark_remote="sc://spark:15002")
    assert with_server(named) == named


def test_a_server_of_another_deployment_is_not_used(
    settings: Settings, servers: list[SparkServer]
) -> None:
    """It has neither the file system nor the credentials of the other one."""
    settings.make_home()
    publish(settings, replace(servers[0], deployment="local", master="local[*]"))
    on_aws = replace(settings, deployment="aws", bucket="lake")

    assert with_server(on_aws) == on_aws


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
    settings: Settings, servers: list[SparkServer], asked: str, of_server: str, is_used: bool
) -> None:
    settings.make_home()
    server = replace(servers[0], deployment="local", master=of_server)
    publish(settings, server)
    asking = replace(settings, spark_master=asked)

    found = with_server(asking)

    assert (found.spark_remote == server.remote) is is_used
    assert is_used or found == asking
