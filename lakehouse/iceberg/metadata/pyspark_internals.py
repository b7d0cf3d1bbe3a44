"""What the lakehouse uses of PySpark that PySpark does not call public: how it starts and reaches
its JVM, the client of Spark Connect, and the names of its own logs.

`test_pyspark_internals.py` fails where another version than `LOOKED_AT` is installed. Then look
whether each of these is still there and does the same, or has become public, run that test and
those of the session, and set the version.
"""

import atexit
import math
import os
import re
import shlex
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import STDOUT, TimeoutExpired
from time import monotonic
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from lakehouse.iceberg.metadata.spark_line import is_spark_3

if TYPE_CHECKING:
    import grpc
    from py4j.java_gateway import JavaGateway
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

LOOKED_AT = "4.1.4"
_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
_SHELL = "pyspark-shell"
_ENDING_SECONDS = 1.0
_GIVEN_UP_SECONDS = 60.0
"""How long a server that did not answer is not waited for again."""
_FORGOTTEN = re.compile(r"SESSION_(CLOSED|NOT_FOUND|CHANGED)|incorrect server side session")
"""What a server says of a session that it does not have."""
LOGS_WITH_VALUES = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""PySpark's loggers of errors, which print the value that could not be read."""


def launch_jvm(
    properties: Path, output: BinaryIO, arguments: Sequence[str] = ()
) -> "JavaGateway":
    """Start the JVM of this process, and write its output to a file.

    :param properties: the file of its configuration, which PySpark would pass as arguments.
    :param arguments: further arguments of `spark-submit`.
    :raises PySparkRuntimeError: when it does not start.
    """
    from pyspark.java_gateway import launch_gateway

    with _submitted_with(properties, arguments):
        # PySpark gives it no types.
        return launch_gateway(  # type: ignore[no-untyped-call]
            None, {"stdout": output, "stderr": STDOUT}
        )


@contextmanager
def _submitted_with(properties: Path, arguments: Sequence[str]) -> Iterator[None]:
    """Let PySpark start Spark with a properties file and further arguments."""
    before = os.environ.get(_ARGUMENTS)
    words = [*arguments, "--properties-file", str(properties), _SHELL]
    os.environ[_ARGUMENTS] = shlex.join(words)
    try:
        yield
    finally:
        del os.environ[_ARGUMENTS]
        if before is not None:
            os.environ[_ARGUMENTS] = before


def has_context() -> bool:
    """Whether this process has a Spark context, and with it a JVM."""
    from pyspark import SparkContext

    return SparkContext._active_spark_context is not None


def end_jvm(started: "JavaGateway | None" = None) -> None:
    """End the JVM of this process, and wait until it is gone: what it does at its end is
    done.

    :param started: one that no context may have come to know.
    """
    from pyspark import SparkContext

    if SparkContext._active_spark_context:
        SparkContext._active_spark_context.stop()
    gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    gateway = gateway or cast(Any, started)
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()


def silence_accumulators(context: "SparkContext") -> None:
    """Let the end of a JVM print nothing: what receives accumulators, which nobody uses here,
    would print a traceback.
    """
    server = cast(Any, context)._accumulatorServer
    server.handle_error = lambda *_: None


def has_jvm_ended(*, wait: bool = True) -> bool:
    """Whether the JVM that this process started is gone.

    :param wait: up to a second where it is there, since what it is killed by takes moments.
    """
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    with suppress(TimeoutExpired):
        process.wait(_ENDING_SECONDS if wait else 0)
    return process.poll() is not None


def waits_without_executor(context: "SparkContext") -> bool | None:
    """Whether tasks of this process's Spark wait while it has no executor; None once it has ended.

    Its status tracker tells Python of stages, and not of executors.
    """
    java = context._jsc
    if java is None:
        return None
    if not len(java.statusTracker().getActiveStageIds()):
        return False
    return not has_executor(context)


def has_executor(context: "SparkContext") -> bool:
    """Whether this process's Spark has an executor that is a process of its own."""
    java = context._jsc
    # The driver is one of them.
    return java is not None and bool(java.sc().getExecutorMemoryStatus().size() > 1)


def cancel_jobs(context: "SparkContext", reason: str) -> None:
    """Cancel all jobs of this process's Spark; what they were for fails with the reason in its
    text, which Python's own methods take none for.
    """
    java = context._jsc
    if java is None:
        return
    for job in java.statusTracker().getActiveJobIds():
        java.sc().cancelJob(job, reason)


def java_property(session: "SparkSession", name: str) -> str:
    """Return a system property of a session's JVM."""
    assert session._jvm is not None
    value: str = session._jvm.java.lang.System.getProperty(name)
    return value


def make_active(session: "SparkSession") -> None:
    """Let a session open its own catalog where it reads a table by the name of its format.

    On Spark 3.5 a catalog that is first used so is opened as the session says that this thread used
    last, and kept: where that is of another home, its tables would be read.
    """
    from pyspark.sql.utils import is_remote

    # A server of Spark Connect sees to it.
    if is_spark_3() and not is_remote():
        jvm = session._jvm
        assert jvm is not None
        jvm.SparkSession.setActiveSession(session._jsparkSession)


@contextmanager
def commit_properties_of_thread(
    session: "SparkSession", properties: Mapping[str, str]
) -> Iterator[None]:
    """Let what this thread commits have snapshot properties: Iceberg's `CommitMetadata`, which
    is what there is on Spark 3.5.

    Its public method takes a function of Java, so that what it sets is set here.
    """
    jvm = session._jvm
    assert jvm is not None
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    metadata = loader.loadClass("org.apache.iceberg.spark.CommitMetadata")
    field = metadata.getDeclaredField("COMMIT_PROPERTIES")
    field.setAccessible(True)
    of_thread = field.get(None)
    given = jvm.java.util.HashMap()
    for key, value in properties.items():
        given.put(key, value)
    of_thread.set(given)
    try:
        yield
    finally:
        of_thread.remove()


def set_connect_retries(session: "SparkSession", max_retries: int) -> None:
    """Let the client of a Spark Connect session give up on its server after some retries, and not
    wait again within a minute for one that it gave up on: what is cleaned up after an error asks it
    several times. One of Spark 3.5 waits each time.
    """
    # Only a session of Connect has a client, and the class of both is one to mypy.
    client = cast(Any, session).client
    if is_spark_3():
        client._retry_policy["max_retries"] = max_retries
        return
    from pyspark.sql.connect.client.retries import DefaultPolicy, RetryPolicyState

    class Policy(DefaultPolicy):
        given_up_at = -math.inf

        def to_state(self) -> RetryPolicyState:
            return State(self)

    class State(RetryPolicyState):
        def next_attempt(self, exception: BaseException | None = None) -> int | None:
            if monotonic() < policy.given_up_at + _GIVEN_UP_SECONDS:
                return None
            wait_ms = super().next_attempt(exception)
            if wait_ms is None:
                policy.given_up_at = monotonic()
            return wait_ms

    policy = Policy(max_retries=max_retries)
    # The error itself is raised, and says more.
    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")
    client.set_retry_policies([policy])


def has_ended(session: "SparkSession") -> bool:
    """Whether the server of a Spark Connect session said that it does not know it, since it was
    restarted.
    """
    return bool(cast(Any, session).client.is_closed)


def has_kept(session: "SparkSession", name: str) -> bool:
    """Whether the server of a Spark Connect session still has it, with what was set on it; the
    server is asked.

    A client takes no note of a session that its server closed, and Spark 3.5 makes another of the
    same name in silence.

    :param name: of configuration that was set on the session.
    """
    try:
        return session.conf.get(name, None) is not None
    except Exception as error:
        # Of a server that does not answer, whatever is asked next says so.
        return not _FORGOTTEN.search(str(error))


def set_all(session: "SparkSession", values: Mapping[str, str]) -> None:
    """Set the configuration of a session, where it is of Spark Connect by one call."""
    at_once = getattr(session.conf, "_set_all", None)
    if at_once and values:
        at_once(dict(values), silent=False)
        return
    for key, value in values.items():
        session.conf.set(key, value)


def unset_all(session: "SparkSession", keys: Collection[str]) -> None:
    """Let a session have its defaults again, where it is of Spark Connect by one call."""
    if not keys or not hasattr(session.conf, "_set_all"):
        for key in keys:
            session.conf.unset(key)
        return
    from pyspark.sql.connect.proto import ConfigRequest

    unset = ConfigRequest.Operation(unset=ConfigRequest.Unset(keys=[*keys]))
    cast(Any, session).client.config(unset)


def release_at_exit(session: "SparkSession") -> None:
    """Let a Spark Connect session be forgotten by its server once this process ends; by itself a
    server keeps what a session opened and cached for an hour.

    It takes the place of what the client does at its end, which is to forget models alone.
    """
    client = cast(Any, session).client
    # A client of Spark 3.5 has neither.
    if hasattr(client, "release_session"):
        atexit.unregister(client._cleanup_ml_cache)
        atexit.register(_release, client)


def _release(client: Any) -> None:
    from pyspark.sql.connect.client.retries import DefaultPolicy

    # A server that is gone has nothing to forget, and is not waited for.
    client.set_retry_policies([DefaultPolicy(max_retries=0)])
    with suppress(Exception):
        client.release_session()


def connect_channel(remote: str) -> "grpc.Channel":
    """Open the channel that a Spark Connect client would talk through."""
    from pyspark.sql.connect.client import core

    # Spark 4 has it by another name.
    builder = getattr(core, "ChannelBuilder" if is_spark_3() else "DefaultChannelBuilder")
    channel: grpc.Channel = builder(remote).toChannel()
    return channel


def java_causes(error: BaseException) -> list[str]:
    """Return the causes of a Java error, the innermost last; its own text leaves them out."""
    stack = str(getattr(error, "_stackTrace", "") or "")
    mark = "Caused by: "
    return [line.removeprefix(mark) for line in stack.split("\n") if line.startswith(mark)]
