"""What an application asks of a cluster: how many executors, of how many cores and how much memory,
in how many partitions they shuffle, and what is left to others.
"""

from collections.abc import Mapping
from types import MappingProxyType

from lakehouse.cluster_settings import ClusterSettings
from lakehouse.runtime.spark_master import STANDALONE, MasterState, Worker
from lakehouse.settings import Settings

_MOST_CORES = 4
"""Of one executor, unless it is said: small ones share less, large ones collect garbage for
longer.
"""
_LEAST_MEMORY_MB = 512
"""Spark takes no less."""
_SHUFFLE_TIMEOUT = "300s"
_PARTITIONS_FOR_A_CORE = 3
_LEAST_PARTITIONS = 8
_NEARLY = 0.9
"""Of the cores that executors may have. The last of 53, which no larger executor fits, is not worth
53 executors of one core, each with a Java of its own.
"""
CORES_MAX = "spark.cores.max"
EXECUTOR_CORES = "spark.executor.cores"
_EXECUTOR_MEMORY = "spark.executor.memory"
_INSTANCES = "spark.executor.instances"
_DYNAMIC = "spark.dynamicAllocation.enabled"
_SHUFFLE_TRACKING = "spark.dynamicAllocation.shuffleTracking"
DEFAULTS = {
    CORES_MAX,
    EXECUTOR_CORES,
    _EXECUTOR_MEMORY,
    _INSTANCES,
    _DYNAMIC,
    f"{_SHUFFLE_TRACKING}.enabled",
    f"{_SHUFFLE_TRACKING}.timeout",
    "spark.sql.adaptive.enabled",
    "spark.sql.files.minPartitionNum",
    "spark.sql.shuffle.partitions",
}
"""The configuration of `executor_configuration`, unless settings of the lakehouse set it."""
_NOTHING: Mapping[str, str] = MappingProxyType({})


def executor_configuration(
    settings: Settings, state: MasterState | None, told: Mapping[str, str] = _NOTHING
) -> dict[str, str]:
    """Return what is asked of a cluster: as the settings say, and else so much of a standalone one
    that something is left for what comes beside it.

    A quarter of all cores is left, and one at least where there are two. Executors come as tasks
    wait for them, and go where they are idle. Where nobody says how many cores there are, Spark
    keeps its own number of partitions, which adaptive execution joins.

    :param told: Spark configuration of LAKEHOUSE_SPARK_CONF, which takes precedence.
    """
    given = settings.cluster
    is_standalone = settings.spark_master.startswith(STANDALONE)
    executors = given.executors or _executors_of(told)
    most = _count(told, CORES_MAX) or _share(state)
    worker = _roomiest(state) if state and state.workers else None
    cores = given.executor_cores or _count(told, EXECUTOR_CORES)
    if cores is None and state and worker:
        cores = _cores_of_each(state, min(_MOST_CORES, worker.room), executors, most)
    elif cores is None and is_standalone:
        # Without a number each would take all cores of its worker, with memory for one.
        cores = 1
    limit = _limit(told, executors, cores, most)
    memory = given.executor_memory or (_memory(worker, cores) if worker and cores else None)
    asked = {"spark.sql.adaptive.enabled": "true", **_number(executors)}
    if cores:
        asked[EXECUTOR_CORES] = str(cores)
    if limit:
        partitions = max(_LEAST_PARTITIONS, _PARTITIONS_FOR_A_CORE * limit)
        asked["spark.sql.shuffle.partitions"] = str(partitions)
        # By itself Spark makes a task of each 128 MB of files: of three on two cores, the last has
        # a core to itself. Where there are many cores, each of more would write a small file.
        asked["spark.sql.files.minPartitionNum"] = str(max(_LEAST_PARTITIONS, limit))
    if limit and is_standalone:
        asked[CORES_MAX] = str(max(limit, cores or limit))
    if memory:
        asked[_EXECUTOR_MEMORY] = memory
    required = set_by_settings(given)
    return {
        name: value for name, value in asked.items() if name in required or name not in told
    }


def _cores_of_each(
    state: MasterState, most_of_each: int, executors: int | None, limit: int | None
) -> int:
    """Return how many cores an executor has: as many as let all executors together have the
    application's share, or nearly, or as let so many executors find room at once.
    """
    room = {
        cores: sum(worker.cores // cores for worker in state.workers)
        for cores in range(1, most_of_each + 1)
    }
    if executors:
        return max((cores for cores in room if room[cores] >= executors), default=1)
    limit = limit or 1
    held = {cores: cores * min(limit // cores, number) for cores, number in room.items()}
    enough = max(held.values()) * _NEARLY
    return max(cores for cores, all_of_them in held.items() if all_of_them >= enough)


def _limit(
    told: Mapping[str, str], executors: int | None, cores: int | None, most: int | None
) -> int | None:
    """Return how many cores an application has at most, where that is known."""
    if not executors:
        return most
    # Executors of other clusters than standalone ones have one core, unless it is said.
    wanted = executors * (cores or 1)
    return min(wanted, _count(told, CORES_MAX) or wanted)


def set_by_settings(cluster: ClusterSettings) -> set[str]:
    """Return the names of Spark's configuration that settings of the lakehouse set."""
    said = set(_number(cluster.executors)) if cluster.executors else set()
    if cluster.executor_cores:
        said.add(EXECUTOR_CORES)
    if cluster.executor_memory:
        said.add(_EXECUTOR_MEMORY)
    return said


def _executors_of(told: Mapping[str, str]) -> int | None:
    """Return the fixed number of executors that others tell Spark; with dynamic allocation it is no
    more than how many there are at first.
    """
    is_dynamic = told.get(_DYNAMIC, "false").strip().lower() == "true"
    return None if is_dynamic else _count(told, _INSTANCES)


def _count(told: Mapping[str, str], name: str) -> int | None:
    value = told.get(name, "").strip()
    return int(value) or None if value.isascii() and value.isdecimal() else None


def _number(executors: int | None) -> dict[str, str]:
    if executors:
        return {_DYNAMIC: "false", _INSTANCES: str(executors)}
    return {
        _DYNAMIC: "true",
        f"{_SHUFFLE_TRACKING}.enabled": "true",
        # What an executor has written for others keeps it: without an end, as long as the driver
        # lives. What is gone after all is computed again.
        f"{_SHUFFLE_TRACKING}.timeout": _SHUFFLE_TIMEOUT,
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
