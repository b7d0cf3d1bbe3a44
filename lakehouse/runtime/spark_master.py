"""What the web page of a standalone master says of its workers and applications, and what an
application asks of them.
"""

import json
import re
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakehouse.cluster_settings import ClusterSettings
from lakehouse.settings import Settings

_STANDALONE = "spark://"
_PORT = re.compile(r":\d+$")
_LEADS = "ALIVE"
"""The status of the master that has the workers; others stand by, or recover."""
_PAGE_PORT = 8080
"""Spark's own default."""
_SECONDS = 3.0
_MOST_CORES = 4
"""Of one executor, unless it is said: small ones share less, large ones collect garbage for
longer.
"""
_LEAST_MEMORY_MB = 512
"""Spark takes no less."""
_SHUFFLE_TIMEOUT = "300s"
_PARTITIONS_FOR_A_CORE = 3
_LEAST_PARTITIONS = 8


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
    if not master.startswith(_STANDALONE):
        return ()
    if cluster.master_page:
        return (cluster.master_page,)
    hosts = (_PORT.sub("", one) for one in master.removeprefix(_STANDALONE).split(","))
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
    except (OSError, ValueError, KeyError, TypeError):
        return None


def executor_configuration(settings: Settings, state: MasterState | None) -> dict[str, str]:
    """Return what is asked of a cluster: as the settings say, and else so much of a standalone one
    that something is left for what comes beside it.

    A quarter of all cores is left, and one at least. Executors come as tasks wait for them, and go
    where they are idle.
    """
    given = settings.cluster
    free = _roomiest(state) if state and state.workers else None
    cores = given.executor_cores or (min(_MOST_CORES, free.room) if free else 1)
    limit = given.executors * cores if given.executors else _share(state)
    cores = given.executor_cores or min(cores, limit or cores)
    memory = given.executor_memory or (_memory(free, cores) if free else None)
    partitions = max(_LEAST_PARTITIONS, _PARTITIONS_FOR_A_CORE * (limit or 0))
    asked = {
        "spark.executor.cores": str(cores),
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.shuffle.partitions": str(partitions),
        **_number(given.executors),
    }
    if limit:
        # By itself Spark makes a task of each 128 MB of files: of three on two cores, the last has
        # a core to itself. Where there are many cores, each of more would write a small file.
        asked["spark.sql.files.minPartitionNum"] = str(max(_LEAST_PARTITIONS, limit))
    if limit and settings.spark_master.startswith(_STANDALONE):
        asked["spark.cores.max"] = str(max(limit, cores))
    if memory:
        asked["spark.executor.memory"] = memory
    return asked


def _number(executors: int | None) -> dict[str, str]:
    if executors:
        return {
            "spark.dynamicAllocation.enabled": "false",
            "spark.executor.instances": str(executors),
        }
    return {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        # What an executor has written for others keeps it: without an end, as long as the driver
        # lives. What is gone after all is computed again.
        "spark.dynamicAllocation.shuffleTracking.timeout": _SHUFFLE_TIMEOUT,
    }


def _share(state: MasterState | None) -> int | None:
    if state is None or not state.cores:
        return None
    return max(1, state.cores - max(1, state.cores // 4))


def _roomiest(state: MasterState) -> Worker:
    """Return the worker that an executor has to fit on: the one with most free, or the smallest
    where all is held.
    """
    most = max(state.workers, key=lambda worker: worker.free_cores)
    return most if most.free_cores else min(state.workers, key=lambda worker: worker.cores)


def _memory(worker: Worker, cores: int) -> str:
    # Whoever holds the rest of the worker's cores has their share of the memory too.
    free_mb = worker.free_memory_mb or worker.memory_mb
    share_mb = free_mb * cores // max(worker.room, cores)
    return f"{max(_LEAST_MEMORY_MB, share_mb)}m"
