"""Whether a Spark server answers, and the workers of a standalone master."""

import http.client
import json
import re
import socket
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from lakehouse.errors import SetupError
from lakehouse.iceberg.frames.pyspark_internals import connect_channel
from lakehouse.settings.cluster_settings import ClusterSettings

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
    return _refusal(address.hostname or "", address.port or CONNECT_PORT)


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
    problems = [_refusal(host, port) for host, port in _hosts(master)]
    if problems and all(problems):
        raise SetupError(
            f"LAKEHOUSE_SPARK_MASTER is {master}, which does not answer: {problems[0]};"
            " expected a master of Spark.",
            next_step="Start it, correct LAKEHOUSE_SPARK_MASTER, or unset it for local[*].",
        )


def _hosts(master: str) -> list[tuple[str, int]]:
    if master.startswith("spark://"):
        return [
            (host, int(port))
            for host, port in re.findall(r"([^,/:]+):(\d+)", master.removeprefix("spark://"))
        ]
    if master.startswith("k8s://"):
        address = master.removeprefix("k8s://")
        parts = urlsplit(address if "://" in address else f"https://{address}")
        return [(parts.hostname or "", parts.port or (80 if parts.scheme == "http" else 443))]
    return []


def _refusal(host: str, port: int) -> str:
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


STANDALONE = "spark://"
_PORT = re.compile(r":\d+$")
_LEADS = "ALIVE"
"""The status of the leading master; others are on standby, or recover."""
_PAGE_PORT = 8080
"""Spark's own default."""


@dataclass(frozen=True)
class Worker:
    """A live worker: its resources, and the free ones."""

    cores: int
    free_cores: int
    memory_mb: int
    free_memory_mb: int

    @property
    def room(self) -> int:
        """The free cores, or all if none are free."""
        return self.free_cores or self.cores


@dataclass(frozen=True)
class Application:
    """An application that runs, or waits for cores."""

    id: str
    name: str
    cores: int


@dataclass(frozen=True)
class MasterState:
    """The workers and the applications of a master."""

    workers: tuple[Worker, ...] = ()
    applications: tuple[Application, ...] = ()

    @classmethod
    def parse(cls, page: Mapping[str, Any]) -> "MasterState":
        """Parse the `/json/` page of a master."""
        workers = [worker for worker in page["workers"] if worker["state"] == "ALIVE"]
        return cls(
            tuple(
                Worker(one["cores"], one["coresfree"], one["memory"], one["memoryfree"])
                for one in workers
            ),
            tuple(
                Application(one["id"], one["name"], one["cores"]) for one in page["activeapps"]
            ),
        )

    @property
    def cores(self) -> int:
        """All cores of the workers."""
        return sum(worker.cores for worker in self.workers)

    @property
    def free_cores(self) -> int:
        """Cores that no application uses."""
        return sum(worker.free_cores for worker in self.workers)


def master_page(cluster: ClusterSettings, master: str) -> str:
    """Return the web page of a standalone master, the first of several; empty for other masters."""
    return next(iter(master_pages(cluster, master)), "")


def master_pages(cluster: ClusterSettings, master: str) -> tuple[str, ...]:
    """Return the web pages of the standalone masters, one of which leads."""
    if not master.startswith(STANDALONE):
        return ()
    if cluster.master_page:
        return (cluster.master_page,)
    hosts = (_PORT.sub("", one) for one in master.removeprefix(STANDALONE).split(","))
    return tuple(f"http://{host}:{_PAGE_PORT}" for host in hosts)


def read_master(cluster: ClusterSettings, master: str) -> MasterState | None:
    """Return the state of the leading standalone master; None if unknown."""
    states = (_read(page) for page in master_pages(cluster, master))
    return next((state for state in states if state is not None), None)


def _read(page: str) -> MasterState | None:
    try:
        # Settings only accept http:// and https:// pages.
        with urllib.request.urlopen(f"{page}/json/", timeout=_SECONDS) as answer:  # noqa: S310
            content = json.load(answer)
        return MasterState.parse(content) if content["status"] == _LEADS else None
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return None
