"""Resources and Python of executors that an application requests from a cluster."""

import sys
from threading import RLock
from typing import TYPE_CHECKING
from weakref import WeakSet

from lakehouse.settings import Settings
from lakehouse.settings.cluster_settings import ARCHIVE_PYTHON, STANDALONE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_PARTITIONS_PER_CORE = 3
_MIN_PARTITIONS = 8
CORES_MAX = "spark.cores.max"
EXECUTOR_CORES = "spark.executor.cores"
_DYNAMIC = "spark.dynamicAllocation"
_ALLOCATED = {
    f"{_DYNAMIC}.enabled": "true",
    f"{_DYNAMIC}.shuffleTracking.enabled": "true",
    # Without a timeout, executors with shuffle data are retained until the driver exits. Lost data
    # is recomputed.
    f"{_DYNAMIC}.shuffleTracking.timeout": "300s",
}


def executor_configuration(settings: Settings) -> dict[str, str]:
    """Return the requested resources; executors are allocated dynamically, up to the setting.

    Without a number of executors, which only a standalone cluster requires, Spark's default number
    of partitions applies, which adaptive execution coalesces.
    """
    cluster = settings.cluster
    is_standalone = settings.spark_master.startswith(STANDALONE)
    cores = cluster.executor_cores
    if is_standalone and not cores:
        # By default an executor takes all cores of its worker, with memory for one.
        cores = 1
    requested = {"spark.sql.adaptive.enabled": "true", **_ALLOCATED}
    if cores:
        requested[EXECUTOR_CORES] = str(cores)
    if cluster.executor_memory:
        requested["spark.executor.memory"] = cluster.executor_memory
    if cluster.executors is None:
        return requested
    # Except on standalone clusters, executors have one core by default.
    total_cores = cluster.executors * (cores or 1)
    partitions = max(_MIN_PARTITIONS, _PARTITIONS_PER_CORE * total_cores)
    requested |= {
        f"{_DYNAMIC}.maxExecutors": str(cluster.executors),
        "spark.sql.shuffle.partitions": str(partitions),
        # By default Spark creates a task for each 128 MB of files: the last of three on two cores
        # leaves a core idle. With more tasks on many cores, each would write a small file.
        "spark.sql.files.minPartitionNum": str(max(_MIN_PARTITIONS, total_cores)),
    }
    if is_standalone:
        # By default an application takes all cores of the cluster, and the next one waits.
        requested[CORES_MAX] = str(total_cores)
    return requested


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
    if settings.cluster.executor_archive and settings.is_on_cluster:
        return {_PYTHON: _UNPACKED}
    if settings.cluster.executor_python:
        return {_PYTHON: settings.cluster.executor_python}
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
    from lakehouse.spark.executor_archive import archive_file

    with _sending:
        if session in _have_archive:
            return
        session.addArtifacts(f"{archive_file(settings, place)}#{_FOLDER}", archive=True)
        session.conf.set(_PYTHON, _UNPACKED)
        _have_archive.add(session)
