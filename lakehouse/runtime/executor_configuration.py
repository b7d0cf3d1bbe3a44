"""The executors, cores, memory and partitions that an application requests from a cluster."""

from lakehouse.runtime.spark_master import STANDALONE, MasterState, Worker
from lakehouse.settings import Settings

_MAX_EXECUTOR_CORES = 4
"""Default limit: small executors share less data, and large ones have longer garbage collections.
"""
_MIN_MEMORY_MB = 512
"""Spark's minimum."""
_PARTITIONS_PER_CORE = 3
_MIN_PARTITIONS = 8
_SUFFICIENT_SHARE = 0.9
"""Share of the available cores that executors must use. To use the last of 53 cores, 53 executors
of one core would each need a JVM.
"""
CORES_MAX = "spark.cores.max"
EXECUTOR_CORES = "spark.executor.cores"
_DYNAMIC = "spark.dynamicAllocation"
_FIXED = {f"{_DYNAMIC}.enabled": "false"}
_ALLOCATED = {
    f"{_DYNAMIC}.enabled": "true",
    f"{_DYNAMIC}.shuffleTracking.enabled": "true",
    # Without a timeout, executors with shuffle data are retained until the driver exits. Lost data
    # is recomputed.
    f"{_DYNAMIC}.shuffleTracking.timeout": "300s",
}


def executor_configuration(settings: Settings, state: MasterState | None) -> dict[str, str]:
    """Return the requested resources: those of the settings, or a share of a standalone cluster.

    A quarter of the cores remains for other applications, at least one of two. Executors are
    allocated dynamically. If the number of cores is unknown, Spark's default number of partitions
    applies, which adaptive execution coalesces.
    """
    cluster = settings.cluster
    is_standalone = settings.spark_master.startswith(STANDALONE)
    executors, cores, memory = (
        cluster.executors,
        cluster.executor_cores,
        cluster.executor_memory,
    )
    limit = _share(state)
    if state and state.workers:
        worker = _target_worker(state)
        cores = cores or _cores_of_each(state, worker, executors, limit or 1)
        memory = memory or _memory(worker, cores)
    elif is_standalone:
        # By default an executor takes all cores of its worker, with memory for one.
        cores = cores or 1
    if executors:
        # Except on standalone clusters, executors have one core by default.
        limit = executors * (cores or 1)
    requested = {"spark.sql.adaptive.enabled": "true", **(_FIXED if executors else _ALLOCATED)}
    if executors:
        requested["spark.executor.instances"] = str(executors)
    if cores:
        requested[EXECUTOR_CORES] = str(cores)
    if memory:
        requested["spark.executor.memory"] = memory
    if limit:
        partitions = max(_MIN_PARTITIONS, _PARTITIONS_PER_CORE * limit)
        requested["spark.sql.shuffle.partitions"] = str(partitions)
        # By default Spark creates a task for each 128 MB of files: the last of three on two cores
        # leaves a core idle. With more tasks on many cores, each would write a small file.
        requested["spark.sql.files.minPartitionNum"] = str(max(_MIN_PARTITIONS, limit))
    if limit and is_standalone:
        requested[CORES_MAX] = str(max(limit, cores or limit))
    return requested


def _cores_of_each(
    state: MasterState, worker: Worker, executors: int | None, limit: int
) -> int:
    """Return the largest number of cores per executor that uses nearly the whole share."""
    room = {
        cores: sum(worker.cores // cores for worker in state.workers)
        for cores in range(1, min(_MAX_EXECUTOR_CORES, worker.room) + 1)
    }
    if executors:
        return max((cores for cores in room if room[cores] >= executors), default=1)
    used = {cores: cores * min(limit // cores, number) for cores, number in room.items()}
    enough = max(used.values()) * _SUFFICIENT_SHARE
    return max(cores for cores, total in used.items() if total >= enough)


def _share(state: MasterState | None) -> int | None:
    if state is None or not state.cores:
        return None
    return max(1, state.cores - max(1, state.cores // 4))


def _target_worker(state: MasterState) -> Worker:
    """Return the worker with the most free cores, or the smallest if none are free."""
    available = max(state.workers, key=lambda worker: worker.free_cores)
    if available.free_cores:
        return available
    return min(state.workers, key=lambda worker: worker.cores)


def _memory(worker: Worker, cores: int) -> str:
    # Other applications on the worker have a proportional share of its memory.
    free_mb = worker.free_memory_mb or worker.memory_mb
    share_mb = free_mb * cores // max(worker.room, cores)
    return f"{max(_MIN_MEMORY_MB, share_mb)}m"
