"""What the web page of a standalone master says of its workers and applications."""

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
"""The status of the master that has the workers; others stand by, or recover."""
_PAGE_PORT = 8080
"""Spark's own default."""
_SECONDS = 3.0


@dataclass(frozen=True)
class Worker:
    """A worker that is there: all that it has, and what nobody holds of it."""

    cores: int
    free_cores: int
    memory_mb: int
    free_memory_mb: int

    @property
    def room(self) -> int:
        """The cores that are free, or where all are held, those that will be."""
        return self.free_cores or self.cores


@dataclass(frozen=True)
class Application:
    """An application that runs, or waits for cores."""

    id: str
    name: str
    cores: int


@dataclass(frozen=True)
class MasterState:
    """The workers and the applications of a master at one moment."""

    workers: tuple[Worker, ...] = ()
    applications: tuple[Application, ...] = ()

    @classmethod
    def parse(cls, page: Mapping[str, Any]) -> "MasterState":
        """Read what a master's `/json/` says."""
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
        """Those that no application holds."""
        return sum(worker.free_cores for worker in self.workers)


def master_page(cluster: ClusterSettings, master: str) -> str:
    """Return where a standalone master has its web page, of several the first; nothing of other
    masters.
    """
    return next(iter(master_pages(cluster, master)), "")


def master_pages(cluster: ClusterSettings, master: str) -> tuple[str, ...]:
    """Return where each of the standalone masters, one of which leads, has its web page."""
    if not master.startswith(STANDALONE):
        return ()
    if cluster.master_page:
        return (cluster.master_page,)
    hosts = (_PORT.sub("", one) for one in master.removeprefix(STANDALONE).split(","))
    return tuple(f"http://{host}:{_PAGE_PORT}" for host in hosts)


def read_master(cluster: ClusterSettings, master: str) -> MasterState | None:
    """Ask the standalone master that leads; None where no page of one answers, or it is another
    master.
    """
    states = (_read(page) for page in master_pages(cluster, master))
    return next((state for state in states if state is not None), None)


def _read(page: str) -> MasterState | None:
    try:
        # Only http:// and https:// are taken as a page.
        with urllib.request.urlopen(f"{page}/json/", timeout=_SECONDS) as answer:  # noqa: S310
            said = json.load(answer)
        return MasterState.parse(said) if said["status"] == _LEADS else None
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return None
