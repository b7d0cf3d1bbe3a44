"""Waits for executors of a cluster, for which Spark itself would wait indefinitely."""

import multiprocessing
from contextlib import suppress
from multiprocessing.pool import ThreadPool
from typing import TYPE_CHECKING

from lakehouse.errors import SetupError
from lakehouse.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CANCEL_SECONDS = 5.0


def master_of(session: "SparkSession") -> str:
    """Return the master of a session's Spark; empty if unknown."""
    return session.conf.get("spark.master", "") or ""


def require_executor(session: "SparkSession", settings: Settings) -> None:
    """Wait until an executor of a cluster has run a task; raises SetupError."""
    master = master_of(session)
    if not master or master.startswith("local"):
        return
    seconds = settings.cluster.wait_seconds
    with ThreadPool(1) as pool:
        task = pool.apply_async(session.range(1).count)
        with suppress(multiprocessing.TimeoutError):
            task.get(seconds)
            return
        # A server would continue to wait for it.
        if settings.spark_remote:
            session.interruptAll()
        else:
            session.sparkContext.cancelAllJobs()
        task.wait(_CANCEL_SECONDS)
    raise SetupError(
        f"No executor came within {seconds:g} s on {master}; expected a free one: the web page"
        " of the master lists its workers and the applications with their cores.",
        next_step=(
            "Wait and run this again, ask for less (LAKEHOUSE_EXECUTOR_CORES,"
            " LAKEHOUSE_EXECUTOR_MEMORY), or set LAKEHOUSE_EXECUTOR_WAIT_SECONDS to more."
        ),
    )
