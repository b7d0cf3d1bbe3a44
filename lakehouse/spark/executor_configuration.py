"""Resources and Python of executors that an application requests from a cluster."""

import sys
from threading import RLock
from typing import TYPE_CHECKING
from weakref import WeakSet

from lakehouse.settings import Settings
from lakehouse.settings.cluster_settings import ARCHIVE_PYTHON
from lakehouse.spark.spark_address import STANDALONE, MasterState, Worker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


ARCHIVES = "spark.archives"
_PYTHON = "spark.sql.execution.pyspark.python"
_FOLDER = "lakehouse-python"
"""Where Spark unpacks the archive, in the working directory of each executor or session."""
_UNPACKED = f"./{_FOLDER}/{ARCHIVE_PYTHON}"
_sending = RLock()
_have_archive: "WeakSet[SparkSession]" = WeakSet()


def python_of_executors(settings: Settings) -> str:
    """Return the Python that tasks are run by, on this machine that of this process."""
    cluster = settings.cluster
    if not settings.is_on_cluster:
        return cluster.executor_python or sys.executable
    if cluster.executor_archive:
        return _UNPACKED
    return cluster.executor_python or cluster.pyspark_python or "python3"


def python_configuration(settings: Settings) -> dict[str, str]:
    """Return the session configuration of the executors' Python, if it is set."""
    if settings.cluster.executor_python:
        return {_PYTHON: settings.cluster.executor_python}
    if settings.cluster.executor_archive and settings.is_on_cluster:
        return {_PYTHON: _UNPACKED}
    return {}


def archive_configuration(settings: Settings) -> dict[str, str]:
    """Return the start configuration with the archive for executors; raises SetupError."""
    place = settings.cluster.executor_archive
    if place is None or not settings.is_on_cluster:
        return {}
    # Most processes need no archive, nor what reads one.
    from lakehouse.spark.executor_archive import archive_file

    # Served by the driver also where it is in a bucket: executors fetch it before they have the
    # jars by which they read one.
    return {ARCHIVES: f"{archive_file(settings, place).as_uri()}#{_FOLDER}"}


def require_python(settings: Settings) -> None:
    """Check the archive before Spark starts on a cluster; raises SetupError."""
    if settings.cluster.executor_archive and settings.is_on_cluster:
        from lakehouse.spark.executor_archive import require_archive

        require_archive(settings, settings.cluster.executor_archive)


def send_archive(session: "SparkSession", settings: Settings) -> None:
    """Send the archive once to the executors of a Spark Connect session; raises SetupError.

    Each session has its own folder, and does not see what its server was started with.
    """
    from pyspark.sql.utils import is_remote

    place = settings.cluster.executor_archive
    is_elsewhere = settings.is_on_cluster or settings.spark_remote is not None
    # The warm server of a cluster has clients too, whose settings name no server.
    if place is None or not is_elsewhere or not is_remote():
        return
    from lakehouse.spark.executor_archive import archive_file, require_archive

    with _sending:
        if session in _have_archive:
            return
        require_archive(settings, place)
        session.addArtifacts(f"{archive_file(settings, place)}#{_FOLDER}", archive=True)
        session.conf.set(_PYTHON, _UNPACKED)
        _have_archive.add(session)
