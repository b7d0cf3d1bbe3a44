"""Whether a session has an executor: on a cluster it comes when others leave it room, or never, and
Spark itself waits without end.
"""

from collections.abc import Callable
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING

from lakehouse.errors import SetupError
from lakehouse.runtime.spark_master import MasterState, master_page, master_pages, read_master
from lakehouse.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHOWN = 3
_CANCEL_SECONDS = 5.0
_AGAIN_SECONDS = 10
"""In which a cluster that has room starts an executor."""
_LOCAL = "local"


def master_of(session: "SparkSession") -> str:
    """Return the master of a session's Spark; nothing where it does not tell."""
    return session.conf.get("spark.master", "") or ""


def is_elsewhere(master: str) -> bool:
    """Whether the executors of a master are processes of their own, which may not be there."""
    return bool(master) and not master.startswith(_LOCAL)


def require_executor(session: "SparkSession", settings: Settings) -> None:
    """Wait until an executor has run a task, where Spark is on a cluster.

    :raises SetupError: when none has within the time of the settings; says who has the cores.
    """
    master = master_of(session)
    if not is_elsewhere(master):
        return
    seconds = PATIENCE.seconds(settings)
    waiting = Waiting(lambda: session.range(1).count())
    if waiting.ends_within(seconds):
        PATIENCE.restore()
        return
    PATIENCE.exhaust()
    # A server lives on, and would go on to wait for it.
    if settings.spark_remote:
        session.interruptAll()
    else:
        session.sparkContext.cancelAllJobs()
    waiting.thread.join(_CANCEL_SECONDS)
    raise no_executor(settings, master, read_master(settings.cluster, master), seconds)


def no_executor(
    settings: Settings, master: str, state: MasterState | None, seconds: float
) -> SetupError:
    """Return the error of a session that waited so long for an executor and has none."""
    return SetupError(
        f"No executor came within {seconds:g} s on {master}: {reason_of(settings, master, state)}.",
        next_step=(
            "Wait and run this again, ask for less (LAKEHOUSE_EXECUTOR_CORES,"
            " LAKEHOUSE_EXECUTOR_MEMORY), or set LAKEHOUSE_EXECUTOR_WAIT_SECONDS to more."
        ),
    )


def spark_page(session: "SparkSession", settings: Settings) -> str:
    """Return where the web page of a session's Spark is, on a cluster; nothing where none is known.

    A client of Spark Connect knows that of the master alone, which leads there.
    """
    if settings.is_on_cluster:
        return session.sparkContext.uiWebUrl or ""
    if not settings.spark_remote:
        return ""
    page = master_page(settings.cluster, master_of(session))
    application = session.conf.get("spark.app.id", "") if page else ""
    return f"{page}/app/?appId={application}" if application else ""


def reason_of(settings: Settings, master: str, state: MasterState | None) -> str:
    """Say why no executor comes, as far as a master tells."""
    pages = ", ".join(master_pages(settings.cluster, master))
    if state is None:
        return (
            "who has the cores cannot be told, since no master that leads answers on its page"
            f" ({pages})"
            if pages
            else "its own pages say who has the cores"
        )
    if not state.workers:
        return "it has no worker"
    holders = sorted(
        (one for one in state.applications if one.cores), key=lambda one: -one.cores
    )
    named = [f"{one.name} ({one.id}) has {one.cores}" for one in holders[:_SHOWN]]
    others = len(holders) - _SHOWN
    more = f" and {others} more" if others > 0 else ""
    held = f"; {', '.join(named)}{more}" if named else ""
    return (
        f"{state.free_cores} of its {state.cores} cores and"
        f" {max(worker.free_memory_mb for worker in state.workers)} MB on one worker are free{held}"
    )


class Patience:
    """How long is waited for an executor: as the settings say, and ten seconds where it was waited
    for in vain just before, as for the table before in the same run.
    """

    def __init__(self) -> None:
        self._exhausted_at: float | None = None

    def seconds(self, settings: Settings) -> float:
        """Return how long the next wait may take."""
        seconds = settings.cluster.wait_seconds
        # What comes so much later is another attempt.
        if self._exhausted_at is None or monotonic() - self._exhausted_at > seconds:
            return seconds
        return min(_AGAIN_SECONDS, seconds)

    def exhaust(self) -> None:
        """Note that it was waited in vain."""
        self._exhausted_at = monotonic()

    def restore(self) -> None:
        """Note that there is an executor."""
        self._exhausted_at = None


PATIENCE = Patience()
"""That of this process, which has one Spark."""


class Waiting:
    """Some work in a thread of its own, which may go on for longer than anybody waits."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self._raised: list[Exception] = []
        self.thread = Thread(target=self._run, daemon=True)
        self.thread.start()

    def ends_within(self, seconds: float) -> bool:
        """Whether it ends in time; what it raised is raised."""
        self.thread.join(seconds)
        if self._raised:
            raise self._raised[0]
        return not self.thread.is_alive()

    def _run(self) -> None:
        try:
            self._work()
        except Exception as error:
            self._raised.append(error)
