"""A run all of whose executors are gone: Spark waits for others without end and without a word, so
that the run is ended by name after as long as one waits for its first executor.
"""

from functools import partial
from secrets import token_hex
from threading import Thread, get_ident
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from lakehouse.errors import SetupError
from lakehouse.iceberg.metadata.pyspark_internals import (
    cancel_jobs,
    has_executor,
    waits_without_executor,
)
from lakehouse.iceberg.metadata.spark_line import is_spark_3
from lakehouse.runtime.driver_page import count_executors, executors_page
from lakehouse.runtime.executors import PATIENCE, Waiting, reason_of
from lakehouse.runtime.spark_master import MasterState, read_master
from lakehouse.settings import Settings

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_LOOK_SECONDS = 2.0


def watch_executors(session: "SparkSession", settings: Settings, master: str) -> None:
    """End what a session on a cluster asks for, where all of its executors are gone and none comes
    within the time of the settings.

    A client of Spark Connect on Spark 3.5 is told nothing by which it could know.
    """
    if not settings.spark_remote:
        watch = (session.sparkContext, settings, master)
        Thread(target=_watch_context, args=watch, daemon=True).start()
    elif not is_spark_3():
        session.registerProgressHandler(StarvedOperations(session, settings, master))


def no_executor_left(
    settings: Settings, master: str, state: MasterState | None, seconds: float
) -> SetupError:
    """Return the error of a run that had executors, and waited so long for others.

    Its text is known again by `lakehouse.iceberg.metadata.error_explanations`.
    """
    return SetupError(
        f"All executors on {master} ended in the middle of it, and no other came within"
        f" {seconds:g} s: {reason_of(settings, master, state)}.",
        next_step=(
            "What was published stays; the same command again does what is left."
            " LAKEHOUSE_EXECUTOR_WAIT_SECONDS set to more waits longer."
        ),
    )


def _watch_context(context: "SparkContext", settings: Settings, master: str) -> None:
    """Look at this process's Spark until it ends."""
    from py4j.protocol import Py4JError

    waits_since: float | None = None
    while True:
        sleep(_LOOK_SECONDS)
        try:
            waits = waits_without_executor(context)
            if waits is None:
                return
            if not waits:
                waits_since = None
                if has_executor(context):
                    PATIENCE.restore()
                continue
            now, seconds = monotonic(), PATIENCE.seconds(settings)
            waits_since = now if waits_since is None else waits_since
            if now - waits_since >= seconds:
                state = read_master(settings.cluster, master)
                cancel_jobs(context, str(no_executor_left(settings, master, state, seconds)))
                PATIENCE.exhaust()
                waits_since = None
        except (Py4JError, OSError):
            # Its Java has ended, as whoever waits for it is told.
            return


class StarvedOperations:
    """Ends what a client of Spark Connect waits for, where the server's application has lost all
    executors.

    The client calls it every two seconds, in the thread that waits, with what the server says of
    the operation; what is raised here is raised there. No task at work may also mean that the
    driver works alone, and has let idle executors go. So after half of the time it is asked for an
    executor for a task of its own.
    """

    def __init__(self, session: "SparkSession", settings: Settings, master: str) -> None:
        self._session, self._settings, self._master = session, settings, master
        self._application = session.conf.get("spark.app.id", "") or ""
        self._page = executors_page(session)
        self._idle_since: dict[str | None, float] = {}
        self._asking: set[int] = set()

    def __call__(
        self, *, inflight_tasks: int, operation_id: str | None, done: bool, **_: Any
    ) -> None:
        """Take in what the server says of an operation.

        :raises SetupError: when it waits for an executor that does not come.
        """
        if inflight_tasks:
            PATIENCE.restore()
        if done or inflight_tasks or get_ident() in self._asking:
            self._idle_since.pop(operation_id, None)
            return
        seconds = PATIENCE.seconds(self._settings)
        idle_since = self._idle_since.setdefault(operation_id, monotonic())
        if monotonic() - idle_since < seconds / 2:
            return
        del self._idle_since[operation_id]
        if self._holds_none() and not self._gets_one(seconds / 2) and self._holds_none():
            PATIENCE.exhaust()
            # The server would go on to wait.
            if operation_id:
                self._session.interruptOperation(operation_id)
            state = read_master(self._settings.cluster, self._master)
            raise no_executor_left(self._settings, self._master, state, seconds)

    def _holds_none(self) -> bool:
        """Whether the server's application holds no core, or has no executor where no master tells
        of that, as on YARN and Kubernetes; not where its own page does not tell either.

        Where it holds some, others at that server have them, and it is their turn.
        """
        state = read_master(self._settings.cluster, self._master)
        if state is None:
            return count_executors(self._page) == 0
        held = {one.id: one.cores for one in state.applications}
        return held.get(self._application) == 0

    def _gets_one(self, seconds: float) -> bool:
        tag = f"lakehouse-{token_hex(8)}"
        if Waiting(partial(self._ask, tag)).ends_within(seconds):
            return True
        self._session.interruptTag(tag)
        return False

    def _ask(self, tag: str) -> None:
        self._asking.add(get_ident())
        try:
            self._session.addTag(tag)
            self._session.range(1).count()
        finally:
            self._asking.discard(get_ident())
