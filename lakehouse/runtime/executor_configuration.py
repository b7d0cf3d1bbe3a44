"""The resources that an application requests from a cluster: executors, their cores and memory, and
shuffle partitions.
"""

from collections.abc import Mapping
from types import MappingProxyType

from lakehouse.cluster_settings import ClusterSettings
from lakehouse.runtime.spark_master import STANDALONE, MasterState, Worker
from lakehouse.settings import Settings

_MAX_EXECUTOR_CORES = 4
"""Default limit: small executors share less data, and large ones have longer garbage collections.
"""
_MIN_MEMORY_MB = 512
"""Spark's minimum."""
_SHUFFLE_TIMEOUT = "300s"
_PARTITIONS_PER_CORE = 3
_MIN_PARTITIONS = 8
_SUFFICIENT_SHARE = 0.9
"""Share of the available cores that executors must use. To use the last of 53 cores, 53 executors
of one core would each need a JVM.
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
_EMPTY: Mapping[str, str] = MappingProxyType({})


def executor_configuration(
    settings: Settings, state: MasterState | None, given: Mapping[str, str] = _EMPTY
) -> dict[str, str]:
    """Return the requested resources: those of the settings, or a share of a standalone cluster.

    A quarter of the cores remains for other applications, at least one of two. Executors are
    allocated dynamically. If the number of cores is unknown, Spark's default number of partitions
    applies, which adaptive execution coalesces.

    :param given: Spark configuration of LAKEHOUSE_SPARK_CONF, which takes precedence.
    """
    cluster = settings.cluster
    is_standalone = settings.spark_master.startswith(STANDALONE)
    executors = cluster.executors or _fixed_executors(given)
    available = _count(given, CORES_MAX) or _share(state)
    worker = _target_worker(state) if state and state.workers else None
    cores = cluster.executor_cores or _count(given, EXECUTOR_CORES)
    if cores is None and state and worker:
        cores = _cores_of_each(
            state, min(_MAX_EXECUTOR_CORES, worker.room), executors, available
        )
    elif cores is None and is_standalone:
        # By default an executor takes all cores of its worker, with memory for one.
        cores = 1
    limit = _limit(given, executors, cores, available)
    memory = cluster.executor_memory or (_memory(worker, cores) if worker and cores else None)
    requested = {"spark.sql.adaptive.enabled": "true", **_number(executors)}
    if cores:
        requested[EXECUTOR_CORES] = str(cores)
    if limit:
        partitions = max(_MIN_PARTITIONS, _PARTITIONS_PER_CORE * limit)
        requested["spark.sql.shuffle.partitions"] = str(partitions)
        # By default Spark creates a task for each 128 MB of files: the last of three on two cores
        # leaves a core idle. With more tasks on many cores, each would write a small file.
        requested["spark.sql.files.minPartitionNum"] = str(max(_MIN_PARTITIONS, limit))
    if limit and is_standalone:
        requested[CORES_MAX] = str(max(limit, cores or limit))
    if memory:
        requested[_EXECUTOR_MEMORY] = memory
    required = set_by_settings(cluster)
    return {
        name: value
        for name, value in requested.items()
        if name in required or name not in given
    }


def _cores_of_each(
    state: MasterState, max_cores: int, executors: int | None, limit: int | None
) -> int:
    """Return the largest number of cores per executor with which all executors can use nearly the
    application's share, or with which the requested executors fit on the workers.
    """
    room = {
        cores: sum(worker.cores // cores for worker in state.workers)
        for cores in range(1, max_cores + 1)
    }
    if executors:
        return max((cores for cores in room if room[cores] >= executors), default=1)
    limit = limit or 1
    used = {cores: cores * min(limit // cores, number) for cores, number in room.items()}
    enough = max(used.values()) * _SUFFICIENT_SHARE
    return max(cores for cores, total in used.items() if total >= enough)


def _limit(
    given: Mapping[str, str], executors: int | None, cores: int | None, available: int | None
) -> int | None:
    """Return the maximum number of cores of an application; None if unknown."""
    if not executors:
        return available
    # Except on standalone clusters, executors have one core by default.
    requested = executors * (cores or 1)
    return min(requested, _count(given, CORES_MAX) or requested)


def set_by_settings(cluster: ClusterSettings) -> set[str]:
    """Return the names of Spark's configuration that settings of the lakehouse set."""
    names = set(_number(cluster.executors)) if cluster.executors else set()
    if cluster.executor_cores:
        names.add(EXECUTOR_CORES)
    if cluster.executor_memory:
        names.add(_EXECUTOR_MEMORY)
    return names


def _fixed_executors(given: Mapping[str, str]) -> int | None:
    """Return the fixed number of executors; None with dynamic allocation, for which it is only the
    initial number.
    """
    is_dynamic = given.get(_DYNAMIC, "false").strip().lower() == "true"
    return None if is_dynamic else _count(given, _INSTANCES)


def _count(given: Mapping[str, str], name: str) -> int | None:
    value = given.get(name, "").strip()
    return int(value) or None if value.isascii() and value.isdecimal() else None


def _number(executors: int | None) -> dict[str, str]:
    if executors:
        return {_DYNAMIC: "false", _INSTANCES: str(executors)}
    return {
        _DYNAMIC: "true",
        f"{_SHUFFLE_TRACKING}.enabled": "true",
        # Without a timeout, executors with shuffle data are retained until the driver exits. Lost
        # data is recomputed.
        f"{_SHUFFLE_TRACKING}.timeout": _SHUFFLE_TIMEOUT,
    }


def _share(state: MasterState | None) -> int | None:
    if state is None or not state.cores:
        return None
    return max(1, state.cores - max(1, state.cores // 4))


def _target_worker(state: MasterState) -> Worker:
    """Return the worker that an executor must fit on: the one with the available free cores, or the
    smallest if none are free.
    """
    available = max(state.workers, key=lambda worker: worker.free_cores)
    return (
        available
        if available.free_cores
        else min(state.workers, key=lambda worker: worker.cores)
    )


def _memory(worker: Worker, cores: int) -> str:
    # Other applications on the worker have a proportional share of its memory.
    free_mb = worker.free_memory_mb or worker.memory_mb
    share_mb = free_mb * cores // max(worker.room, cores)
    return f"{max(_MIN_MEMORY_MB, share_mb)}m"
