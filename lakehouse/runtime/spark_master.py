"""The workers and applications of a standalone master, read from its web page."""

import http.client
import json
import re
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakehouse.cluster_settings import ClusterSettings

STANDALONE = "spark://"
_PORT = re.compile(r":\d+$")
_LEADS = "ALIVE"
"""The status of the leading master; others are on standby, or recover."""
_PAGE_PORT = 8080
"""Spark's own default."""
_SECONDS = 3.0


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
