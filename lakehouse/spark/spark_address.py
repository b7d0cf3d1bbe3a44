"""Whether a Spark server answers."""

import re
import socket
from urllib.parse import urlsplit

from lakehouse.errors import SetupError
from lakehouse.iceberg.frames.pyspark_internals import connect_channel
from lakehouse.settings.cluster_settings import STANDALONE

CONNECT_PORT = 15002
_SECONDS = 3.0
HANDSHAKE_SECONDS = 10.0


def place_of(remote: str) -> str:
    """Return a Spark Connect address without what follows it, which may hold a token."""
    address = urlsplit(remote)
    return f"sc://{address.hostname}:{address.port or CONNECT_PORT}"


def problem_of(remote: str) -> str:
    """Return why nothing answers at a Spark Connect address; nothing where something does."""
    address = urlsplit(remote)
    return _connection_problem(address.hostname or "", address.port or CONNECT_PORT)


def require_connect(remote: str) -> None:
    """Raise SetupError if no Spark Connect server answers."""
    problem = problem_of(remote) or _handshake_problem(remote)
    if problem:
        raise SetupError(
            f"SPARK_REMOTE is {place_of(remote)}, which does not answer: {problem}; expected a"
            " Spark Connect server.",
            next_step=(
                "Start it, correct SPARK_REMOTE, or unset it to run Spark in this process."
            ),
        )


def require_master(master: str) -> None:
    """Raise SetupError if no host of a standalone or Kubernetes master answers."""
    problems = [_connection_problem(host, port) for host, port in _hosts(master)]
    if problems and all(problems):
        raise SetupError(
            f"LAKEHOUSE_SPARK_MASTER is {master}, which does not answer: {problems[0]};"
            " expected a master of Spark.",
            next_step="Start it, correct LAKEHOUSE_SPARK_MASTER, or unset it for local[*].",
        )


def _hosts(master: str) -> list[tuple[str, int]]:
    if master.startswith(STANDALONE):
        return [
            (host, int(port))
            for host, port in re.findall(r"([^,/:]+):(\d+)", master.removeprefix(STANDALONE))
        ]
    if master.startswith("k8s://"):
        address = master.removeprefix("k8s://")
        parts = urlsplit(address if "://" in address else f"https://{address}")
        return [(parts.hostname or "", parts.port or (80 if parts.scheme == "http" else 443))]
    return []


def _connection_problem(host: str, port: int) -> str:
    try:
        with socket.create_connection((host, port), timeout=_SECONDS):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def _handshake_problem(remote: str) -> str:
    import grpc

    channel = connect_channel(remote)
    try:
        grpc.channel_ready_future(channel).result(timeout=HANDSHAKE_SECONDS)
    except grpc.FutureTimeoutError:
        return (
            "it accepts connections, but does not reply; with a token, clients require TLS, except"
            " on localhost"
        )
    finally:
        channel.close()
    return ""
