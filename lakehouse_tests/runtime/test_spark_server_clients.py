"""Who is connected to a Spark server: by its connections, whichever processes they are of."""

import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from lakehouse.runtime.processes import Process
from lakehouse.runtime.spark_server import SparkServer

pytestmark = pytest.mark.unit
CONNECTS = """
import socket, sys
with socket.create_connection(("localhost", int(sys.argv[1]))):
    print("connected", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


@pytest.fixture
def server(listener: socket.socket) -> SparkServer:
    """A server that this process is, which nobody has connected to yet."""
    return SparkServer(listener.getsockname()[1], "T0ken", Process.current())


def test_what_this_process_has_open_does_not_count(server: SparkServer) -> None:
    assert not server.has_other_clients
    with socket.create_connection(("127.0.0.1", server.port)):
        assert not server.has_other_clients


def test_another_counts_as_long_as_it_is_connected(
    server: SparkServer, listener: socket.socket
) -> None:
    command = [sys.executable, "-c", CONNECTS, str(server.port)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as client:
        assert client.stdout
        assert client.stdout.readline() == "connected\n"
        connection, _ = listener.accept()
        assert server.has_other_clients
        client.communicate("")
    connection.close()
    assert not server.has_other_clients


def test_of_a_server_that_is_gone_nobody_is_a_client() -> None:
    assert not SparkServer(1, "T0ken", Process("here", 2**22 + 1, 0.0)).has_other_clients
