"""Waits for executors of a cluster, for which Spark itself would wait indefinitely."""

from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING

from lakehouse.errors import SetupError
from lakehouse.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CANCEL_SECONDS = 5.0


def master_of(session: "SparkSession") -> str:
    """Return the master of a session's Spark; empty if unknown."""
    return session.conf.get("spark.master", "") or ""


def is_elsewhere(master: str) -> bool:
    """Return whether executors of a master are separate processes, which can be missing."""
    return bool(master) and not master.startswith("local")


def require_executor(session: "SparkSession", settings: Settings) -> None:
    """Wait until an executor of a cluster has run a task; raises SetupError."""
    master = master_of(session)
    if not is_elsewhere(master):
        return
    seconds = settings.cluster.wait_seconds
    waiting = Waiting(lambda: session.range(1).count())
    if waiting.ends_within(seconds):
        return
    # A server would continue to wait for it.
    if settings.spark_remote:
        session.interruptAll()
    else:
        session.sparkContext.cancelAllJobs()
    waiting.thread.join(_CANCEL_SECONDS)
    raise SetupError(
        f"No executor came within {seconds:g} s on {master}; expected a free one: the web page"
        " of the master lists its workers and the applications with their cores.",
        next_step=(
            "Wait and run this again, ask for less (LAKEHOUSE_EXECUTOR_CORES,"
            " LAKEHOUSE_EXECUTOR_MEMORY), or set LAKEHOUSE_EXECUTOR_WAIT_SECONDS to more."
        ),
    )


class Waiting:
    """Work in a thread, which can continue after its caller stops waiting."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self._raised: list[Exception] = []
        self.thread = Thread(target=self._run, daemon=True)
        self.thread.start()

    def ends_within(self, seconds: float) -> bool:
        """Return whether it finishes in time; raises its exception."""
        self.thread.join(seconds)
        if self._raised:
            raise self._raised[0]
        return not self.thread.is_alive()

    def _run(self) -> None:
        try:
            self._work()
        except Exception as error:
            self._raised.append(error)
