"""Which Python executors of Spark have, and how an archive of the settings reaches them."""

import sys
from threading import RLock
from typing import TYPE_CHECKING
from weakref import WeakSet

from lakehouse.cluster_settings import ARCHIVE_PYTHON
from lakehouse.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    from lakehouse.runtime.executor_archive import archive_file

    # Served by the driver also where it is in a bucket: executors fetch it before they have the
    # jars by which they read one.
    return {ARCHIVES: f"{archive_file(settings, place).as_uri()}#{_FOLDER}"}


def require_python(settings: Settings) -> None:
    """Check the archive before Spark starts on a cluster; raises SetupError."""
    if settings.cluster.executor_archive and settings.is_on_cluster:
        from lakehouse.runtime.executor_archive import require_archive

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
    from lakehouse.runtime.executor_archive import archive_file, require_archive

    with _sending:
        if session in _have_archive:
            return
        require_archive(settings, place)
        session.addArtifacts(f"{archive_file(settings, place)}#{_FOLDER}", archive=True)
        session.conf.set(_PYTHON, _UNPACKED)
        _have_archive.add(session)
