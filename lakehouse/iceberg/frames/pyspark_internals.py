"""Private API of PySpark: the JVM, the Spark Connect client, and log names.

`test_pyspark_internals.py` fails with another version than `CHECKED_VERSION`: then check each
private name, run the session tests, and set the version.
"""

import atexit
import math
import re
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from subprocess import STDOUT, TimeoutExpired
from time import monotonic
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from lakehouse.iceberg.catalog.iceberg_release import is_spark_3

if TYPE_CHECKING:
    import grpc
    from py4j.java_gateway import JavaGateway
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

CHECKED_VERSION = "4.1.4"
_ENDING_SECONDS = 1.0
_GIVEN_UP_SECONDS = 60.0
"""How long to wait before a retry of a server that did not answer."""
_UNKNOWN_SESSION = re.compile(
    r"SESSION_(CLOSED|NOT_FOUND|CHANGED)|incorrect server side session"
)
"""A server's messages about a session that it does not have."""
LOGS_WITH_VALUES = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""PySpark's error loggers, which print values that could not be read."""


def launch_jvm(configuration: Mapping[str, str], output: BinaryIO) -> "JavaGateway":
    """Start the JVM of this process, and write its output to a file.

    :param configuration: passed to `spark-submit` as arguments.
    :raises PySparkRuntimeError: when it does not start.
    """
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf(loadDefaults=False).setAll([*configuration.items()])
    # PySpark gives it no types.
    return launch_gateway(conf, {"stdout": output, "stderr": STDOUT})  # type: ignore[no-untyped-call]


def has_context() -> bool:
    """Whether this process has a Spark context, and thus a JVM."""
    from pyspark import SparkContext

    return SparkContext._active_spark_context is not None


def end_jvm(started: "JavaGateway | None" = None) -> None:
    """Stop the JVM of this process and wait for its exit.

    :param started: a JVM that may not have a context yet.
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
    """Suppress the traceback of the accumulator server, which is unused, at the JVM's exit."""
    server = cast(Any, context)._accumulatorServer
    server.handle_error = lambda *_: None


def has_jvm_exited(*, wait: bool = True) -> bool:
    """Whether the JVM that this process started has exited.

    :param wait: whether to wait up to a second for the exit, since a kill takes time.
    """
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    with suppress(TimeoutExpired):
        process.wait(_ENDING_SECONDS if wait else 0)
    return process.poll() is not None


def java_property(session: "SparkSession", name: str) -> str:
    """Return a system property of a session's JVM."""
    assert session._jvm is not None
    value: str = session._jvm.java.lang.System.getProperty(name)
    return value


def make_active(session: "SparkSession") -> None:
    """Make a session active, so that it opens its own catalog.

    On Spark 3.5, a catalog is created from the last active session and cached.
    """
    from pyspark.sql.utils import is_remote

    # A Spark Connect server handles it.
    if is_spark_3() and not is_remote():
        jvm = session._jvm
        assert jvm is not None
        jvm.SparkSession.setActiveSession(session._jsparkSession)


@contextmanager
def commit_properties_of_thread(
    session: "SparkSession", properties: Mapping[str, str]
) -> Iterator[None]:
    """Add snapshot properties to this thread's commits, the only way on Spark 3.5.

    The public method of Iceberg's `CommitMetadata` takes a Java function, so its field is set.
    """
    jvm = session._jvm
    assert jvm is not None
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    metadata = loader.loadClass("org.apache.iceberg.spark.CommitMetadata")
    field = metadata.getDeclaredField("COMMIT_PROPERTIES")
    field.setAccessible(True)
    thread_properties = field.get(None)
    values = jvm.java.util.HashMap()
    for key, value in properties.items():
        values.put(key, value)
    thread_properties.set(values)
    try:
        yield
    finally:
        thread_properties.remove()


def set_connect_retries(session: "SparkSession", max_retries: int) -> None:
    """Limit the retries of a Spark Connect client.

    A server that did not answer is not retried for a minute. On Spark 3.5, each request is
    retried.
    """
    # Only a Connect session has a client, and mypy sees the same class for both.
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
    # The error is raised, with more detail.
    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")
    client.set_retry_policies([policy])


def is_session_closed(session: "SparkSession") -> bool:
    """Whether the server of a Spark Connect session reported that it was restarted."""
    return bool(cast(Any, session).client.is_closed)


def has_kept(session: "SparkSession", name: str) -> bool:
    """Whether the server of a Spark Connect session still has it; sends a request.

    Spark 3.5 silently creates another session with the same name.

    :param name: a configuration key that was set on the session.
    """
    try:
        return session.conf.get(name, None) is not None
    except Exception as error:
        # If the server does not answer, the next request reports it.
        return not _UNKNOWN_SESSION.search(str(error))


def set_all(session: "SparkSession", values: Mapping[str, str]) -> None:
    """Set the configuration of a session, in one call on Spark Connect."""
    set_together = getattr(session.conf, "_set_all", None)
    if set_together and values:
        set_together(dict(values), silent=False)
        return
    for key, value in values.items():
        session.conf.set(key, value)


def unset_all(session: "SparkSession", keys: Collection[str]) -> None:
    """Reset a session's configuration to the defaults, in one call on Spark Connect."""
    if not keys or not hasattr(session.conf, "_set_all"):
        for key in keys:
            session.conf.unset(key)
        return
    from pyspark.sql.connect.proto import ConfigRequest

    unset = ConfigRequest.Operation(unset=ConfigRequest.Unset(keys=[*keys]))
    cast(Any, session).client.config(unset)


def release_at_exit(session: "SparkSession") -> None:
    """Release a Spark Connect session at exit; otherwise the server keeps it for an hour.

    This replaces the client's exit handler, which only removes models.
    """
    client = cast(Any, session).client
    # The client of Spark 3.5 has neither method.
    if hasattr(client, "release_session"):
        atexit.unregister(client._cleanup_ml_cache)
        atexit.register(_release, client)


def _release(client: Any) -> None:
    from pyspark.sql.connect.client.retries import DefaultPolicy

    # If the server has exited, there is nothing to release, so do not retry.
    client.set_retry_policies([DefaultPolicy(max_retries=0)])
    with suppress(Exception):
        client.release_session()


def connect_channel(remote: str) -> "grpc.Channel":
    """Open the channel that a Spark Connect client uses."""
    from pyspark.sql.connect.client import core

    # Spark 4 renamed it.
    builder = getattr(core, "ChannelBuilder" if is_spark_3() else "DefaultChannelBuilder")
    channel: grpc.Channel = builder(remote).toChannel()
    return channel


def java_causes(error: BaseException) -> list[str]:
    """Return the causes of a Java error, innermost last; its own text omits them."""
    stack = str(getattr(error, "_stackTrace", "") or "")
    mark = "Caused by: "
    return [line.removeprefix(mark) for line in stack.split("\n") if line.startswith(mark)]
