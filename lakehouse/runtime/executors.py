"""Executors of a session on a cluster.

Spark waits indefinitely for the first executor, and for a replacement after all executors have
exited. A session waits for as long as the settings allow, and then fails with the reason.
"""

import json
import urllib.request
from collections.abc import Callable
from functools import partial
from http.client import HTTPException
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
from lakehouse.runtime.spark_master import MasterState, master_page, master_pages, read_master
from lakehouse.settings import Settings

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_SHOWN = 3
_POLL_SECONDS = 2.0
_PAGE_SECONDS = 3.0
_DEFAULT_UI_PORT = "4040"
_CANCEL_SECONDS = 5.0
_AGAIN_SECONDS = 10
"""In which a cluster that has room starts an executor."""
_LOCAL = "local"


def master_of(session: "SparkSession") -> str:
    """Return the master of a session's Spark; empty if unknown."""
    return session.conf.get("spark.master", "") or ""


def is_elsewhere(master: str) -> bool:
    """Return whether executors of a master are separate processes, which can be missing."""
    return bool(master) and not master.startswith(_LOCAL)


def require_executor(session: "SparkSession", settings: Settings) -> None:
    """Wait until an executor has run a task, where Spark is on a cluster.

    :raises SetupError: if none has within the time of the settings; names the applications with
        the cores.
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
    # A server would continue to wait for it.
    if settings.spark_remote:
        session.interruptAll()
    else:
        session.sparkContext.cancelAllJobs()
    waiting.thread.join(_CANCEL_SECONDS)
    raise no_executor(settings, master, read_master(settings.cluster, master), seconds)


def no_executor(
    settings: Settings, master: str, state: MasterState | None, seconds: float
) -> SetupError:
    """Return the error of a session without an executor."""
    return SetupError(
        f"No executor came within {seconds:g} s on {master}: {reason_of(settings, master, state)}.",
        next_step=(
            "Wait and run this again, ask for less (LAKEHOUSE_EXECUTOR_CORES,"
            " LAKEHOUSE_EXECUTOR_MEMORY), or set LAKEHOUSE_EXECUTOR_WAIT_SECONDS to more."
        ),
    )


def spark_page(session: "SparkSession", settings: Settings) -> str:
    """Return the URL of a session's Spark UI on a cluster; empty if unknown.

    A client of Spark Connect only knows the page of the master, which links to it.
    """
    if settings.is_on_cluster:
        return session.sparkContext.uiWebUrl or ""
    if not settings.spark_remote:
        return ""
    page = master_page(settings.cluster, master_of(session))
    application = session.conf.get("spark.app.id", "") if page else ""
    return f"{page}/app/?appId={application}" if application else ""


def reason_of(settings: Settings, master: str, state: MasterState | None) -> str:
    """Return why no executor starts, as reported by a standalone master."""
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
    users = sorted((app for app in state.applications if app.cores), key=lambda app: -app.cores)
    named = [f"{app.name} ({app.id}) has {app.cores}" for app in users[:_SHOWN]]
    more = f" and {len(users) - _SHOWN} more" if len(users) > _SHOWN else ""
    used = f"; {', '.join(named)}{more}" if named else ""
    return (
        f"{state.free_cores} of its {state.cores} cores and"
        f" {max(worker.free_memory_mb for worker in state.workers)} MB on one worker are free{used}"
    )


class Patience:
    """The time to wait for an executor: that of the settings, or ten seconds shortly after a wait
    without success, such as for the previous table of a run.
    """

    def __init__(self) -> None:
        self._exhausted_at: float | None = None

    def seconds(self, settings: Settings) -> float:
        """Return the limit of the next wait."""
        seconds = settings.cluster.wait_seconds
        # A much later wait is another attempt.
        if self._exhausted_at is None or monotonic() - self._exhausted_at > seconds:
            return seconds
        return min(_AGAIN_SECONDS, seconds)

    def exhaust(self) -> None:
        """Record a wait without success."""
        self._exhausted_at = monotonic()

    def restore(self) -> None:
        """Record that there is an executor."""
        self._exhausted_at = None


PATIENCE = Patience()
"""The one of this process, which has one Spark."""


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


def watch_executors(session: "SparkSession", settings: Settings, master: str) -> None:
    """Let the work of a session on a cluster fail if all executors have exited, and none starts
    within the time of the settings.

    A client of Spark Connect on Spark 3.5 cannot detect this.
    """
    if not settings.spark_remote:
        watch = (session.sparkContext, settings, master)
        Thread(target=_watch_context, args=watch, daemon=True).start()
    elif not is_spark_3():
        session.registerProgressHandler(StarvedOperations(session, settings, master))


def no_executor_left(
    settings: Settings, master: str, state: MasterState | None, seconds: float
) -> SetupError:
    """Return the error of a run whose executors have all exited.

    `lakehouse.iceberg.metadata.error_explanations` recognizes its text.
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
    """Poll the Spark of this process until it exits."""
    from py4j.protocol import Py4JError

    waits_since: float | None = None
    while True:
        sleep(_POLL_SECONDS)
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
            # The JVM has exited; its callers get an error.
            return


class StarvedOperations:
    """Progress handler of a Spark Connect client: fails operations if the server has lost all
    executors.

    The client calls it every two seconds in the waiting thread, which receives its exceptions. An
    operation without running tasks can also be driver work after idle executors were released.
    Therefore a task is submitted after half of the time.
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
        """Process the progress of an operation.

        :raises SetupError: if it waits for an executor that does not start.
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
        if self._has_none() and not self._gets_one(seconds / 2) and self._has_none():
            PATIENCE.exhaust()
            # The server would continue to wait.
            if operation_id:
                self._session.interruptOperation(operation_id)
            state = read_master(self._settings.cluster, self._master)
            raise no_executor_left(self._settings, self._master, state, seconds)

    def _has_none(self) -> bool:
        """Return whether the server's application has no core, or on YARN and Kubernetes no
        executor; False if neither the master nor the driver's page answers.

        If it has some, other sessions of the server use them.
        """
        state = read_master(self._settings.cluster, self._master)
        if state is None:
            return count_executors(self._page) == 0
        cores = {app.id: app.cores for app in state.applications}
        return cores.get(self._application) == 0

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


def executors_page(session: "SparkSession") -> str:
    """Return the URL of the executors in the REST API of a session's driver."""
    host = session.conf.get("spark.driver.host", "")
    port = session.conf.get("spark.ui.port", _DEFAULT_UI_PORT)
    application = session.conf.get("spark.app.id", "")
    return f"http://{host}:{port}/api/v1/applications/{application}/executors"


def count_executors(page: str) -> int | None:
    """Return the current number of executors of a driver; None if its page does not answer, or is
    another application's.
    """
    try:
        # The URL is always http://.
        with urllib.request.urlopen(page, timeout=_PAGE_SECONDS) as answer:  # noqa: S310
            executors = json.load(answer)
        active = [
            executor
            for executor in executors
            if executor["isActive"] and executor["id"] != "driver"
        ]
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return None
    return len(active)
