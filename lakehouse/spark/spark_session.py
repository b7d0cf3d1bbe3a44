"""The Spark session: one JVM per process, started on first use, or a Spark Connect server.

dagster-pyspark's resource creates it. Its start resolves and downloads nothing.
"""

import gc
import logging
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from threading import RLock, current_thread, main_thread
from typing import TYPE_CHECKING

from lakehouse.errors import SettingsError, SetupError
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.iceberg_release import IcebergRelease
from lakehouse.iceberg.frames.pyspark_internals import (
    LOGS_WITH_VALUES,
    end_jvm,
    has_context,
    has_kept,
    is_session_closed,
    launch_jvm,
    release_at_exit,
    set_all,
    set_connect_retries,
    silence_accumulators,
)
from lakehouse.iceberg.frames.spark_errors import one_line
from lakehouse.settings import Settings
from lakehouse.settings.cluster_settings import ClusterSettings
from lakehouse.spark import jars, jvm
from lakehouse.spark.connect_server import (
    EXTENSIONS,
    EXTENSIONS_KEY,
    has_extensions,
    iceberg_version,
    require_server,
)
from lakehouse.spark.executor_configuration import archive_configuration
from lakehouse.spark.executors import require_executor
from lakehouse.spark.jvm import compiler_options
from lakehouse.spark.jvm_class_archive import archive_options
from lakehouse.spark.session_configuration import (
    session_configuration,
    shared_configuration,
    with_java_options,
)
from lakehouse.spark.spark_address import require_connect, require_master
from lakehouse.spark.spark_folders import (
    last_words,
    log_file,
    log_size,
    open_log,
    prepare_temporary_folder,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONNECT_RETRIES = 5
"""After pauses of 0.05, 0.2, 0.8, 3.2 and 12.8 seconds."""
_IDLE_SECONDS = 30.0
"""After this time, the session is checked on the server, which takes milliseconds."""
_JARS = "spark.jars"
_AT_START = (
    _JARS,
    "spark.driver.memory",
    "spark.driver.extra",
    "spark.driver.defaultJavaOptions",
)
"""Prefixes of the configuration that Spark needs before its JVM starts."""
_MARK = "spark.lakehouse.session"
"""Configuration that marks a session as configured here."""
_opening = RLock()
_sessions: dict[tuple[str, str], "SparkSession"] = {}
_used_at: dict[tuple[str, str], float] = {}


def open_session(
    settings: Settings,
    catalog: Catalog,
    *,
    java_options: Sequence[str] | None = None,
    is_own_server: bool = False,
) -> "SparkSession":
    """Return this process's session for a catalog; the first call starts the JVM, or connects.

    :param java_options: JVM options that replace the class archive and the choice of compilers.
    :param is_own_server: the lakehouse started the Spark Connect server, so that it need not be
        checked.
    :raises SetupError: if Java or a jar is missing or damaged, the JVM does not start, no Spark
        answers at the address of the settings, a server lacks something, or a cluster starts no
        executor.
    """
    key = _key(settings, catalog)
    with _opening:
        if settings.spark_remote:
            _forget_ended(key)
        if key not in _sessions:
            if settings.spark_remote:
                require_connect(settings.spark_remote)
            _keep_values_out_of_logs()
            is_first = not _sessions
            session = _first(settings, java_options) if is_first else _another(settings)
            if settings.spark_remote:
                _configure(session, settings.cluster)
            register(session, catalog)
            # The check of a server below needs an executor.
            if is_first and (settings.spark_remote or settings.is_on_cluster):
                require_executor(session, settings)
            if is_first and settings.spark_remote and not is_own_server:
                require_server(session, settings, catalog)
            set_all(session, {"spark.sql.defaultCatalog": catalog.name, _MARK: "yes"})
            _sessions[key] = session
        _used_at[key] = time.time()
        return _sessions[key]


def _key(settings: Settings, catalog: Catalog) -> tuple[str, str]:
    return (settings.spark_remote or "", repr(sorted(catalog.spark_configuration.items())))


def _forget_ended(key: tuple[str, str]) -> None:
    """Stop a session that its server closed, after a restart or an hour without use."""
    session = _sessions.get(key)
    if session is None:
        return
    is_idle = time.time() - _used_at.get(key, 0) > _IDLE_SECONDS
    if is_session_closed(session) or (is_idle and not has_kept(session, _MARK)):
        del _sessions[key]
        session.stop()


def page_of_process(settings: Settings) -> str:
    """Return the URL of this process's Spark UI on a cluster; empty if it has none."""
    session = next(iter(_sessions.values()), None)
    if session is None or not settings.is_on_cluster:
        return ""
    from pyspark.sql.utils import is_remote

    return "" if is_remote() else session.sparkContext.uiWebUrl or ""


def open_platform_session(catalog: Catalog) -> "tuple[SparkSession, Catalog]":
    """Return the session of a job on the platform's Spark, and the catalog with its Iceberg."""
    from pyspark.sql import SparkSession

    _keep_values_out_of_logs()
    configuration = {
        EXTENSIONS_KEY: EXTENSIONS,
        **shared_configuration(),
        **catalog.spark_configuration,
    }
    session = (
        SparkSession.builder.appName("lakehouse").config(map={**configuration}).getOrCreate()
    )
    if not has_extensions(session):
        raise _no_iceberg("it was started without Iceberg's extensions")
    register(session, catalog)
    session.conf.set("spark.sql.defaultCatalog", catalog.name)
    try:
        version = iceberg_version(session, catalog)
    except Exception as error:
        raise _no_iceberg(one_line(error)) from error
    return session, replace(catalog, iceberg=IcebergRelease(version))


def _no_iceberg(problem: str) -> SetupError:
    return SetupError(
        f"The Spark of this job has no Iceberg: {problem.rstrip('.')}; expected its jars and its"
        " extensions.",
        next_step="Start a job of Glue with --datalake-formats iceberg; of EMR, with its jars.",
    )


def _keep_values_out_of_logs() -> None:
    """Disable PySpark's error loggers, which print values that could not be read."""
    # Spark 3.5 has no such log.
    if find_spec("pyspark.logger") is None:
        return
    from pyspark.logger import PySparkLogger

    for name in LOGS_WITH_VALUES:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


def close_jvm() -> None:
    """Stop the JVM of this process, and wait for its exit."""
    _sessions.clear()
    _used_at.clear()
    end_jvm()


def collect_garbage(session: "SparkSession") -> None:
    """Collect garbage in the JVM of a session (or an executor), to remove unused files."""
    # References of Python keep objects of Java.
    gc.collect()
    session.sql("SELECT java_method('java.lang.System', 'gc')").collect()


def register(session: "SparkSession", catalog: Catalog) -> None:
    """Make a running session know a catalog; Spark opens one when its name is first used."""
    set_all(session, catalog.spark_configuration)


def _configure(session: "SparkSession", cluster: ClusterSettings) -> None:
    """Set LAKEHOUSE_SPARK_CONF on a Spark Connect session; raises SettingsError."""
    for name, value in cluster.of_sessions.items():
        if session.conf.get(name, None) == value:
            continue
        try:
            session.conf.set(name, value)
        except Exception as error:
            raise SettingsError(
                f"LAKEHOUSE_SPARK_CONF sets {name}, which a client of Spark Connect cannot set:"
                f" {one_line(error).rstrip('.')}.",
                next_step="Leave it out, and start the server with it.",
            ) from error


def _first(settings: Settings, java_options: Sequence[str] | None) -> "SparkSession":
    from dagster_pyspark import LazyPySparkResource

    if settings.spark_remote:
        configuration = session_configuration(settings)
        return _connected(LazyPySparkResource(spark_config=configuration).spark_session)
    require_master(settings.spark_master)
    archive = archive_configuration(settings)
    configuration = session_configuration(settings, archive=archive)
    _start_jvm(settings, configuration, java_options)
    session: SparkSession = LazyPySparkResource(spark_config=configuration).spark_session
    return session


def _connected(session: "SparkSession") -> "SparkSession":
    """Let a client give up on a stopped server after 15 seconds, and release it at exit."""
    set_connect_retries(session, _CONNECT_RETRIES)
    release_at_exit(session)
    return session


def _another(settings: Settings) -> "SparkSession":
    from pyspark.sql import SparkSession

    if settings.spark_remote:
        return _connected(
            SparkSession.builder.config(map={**session_configuration(settings)}).create()
        )
    return next(iter(_sessions.values())).newSession()


def _start_jvm(
    settings: Settings, configuration: dict[str, str], java_options: Sequence[str] | None
) -> None:
    """Start the JVM, with its output in a file, and the context for the session."""
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError

    if has_context():
        return
    jars.require(settings)
    chosen = jvm.prepare(settings)
    prepare_temporary_folder(settings)
    if java_options is None:
        java_options = [*archive_options(settings, chosen), *compiler_options(settings)]
    configuration = with_java_options(configuration, java_options)
    started_at = log_size(settings)
    # Arguments are visible to all users of the machine; the rest is sent to the JVM.
    arguments = {
        name: value for name, value in configuration.items() if name.startswith(_AT_START)
    }
    try:
        with open_log(settings) as output:
            gateway = launch_jvm(arguments, output)
    except PySparkRuntimeError as error:
        raise SetupError(
            f"The JVM of Spark did not start: {last_words(settings, started_at)}",
            next_step=(
                "`lakehouse doctor` shows which Java is used; all that Spark logged is in"
                f" {log_file(settings)}."
            ),
        ) from error
    try:
        with _own_interrupts():
            # Spark added the jars of `--packages` to these.
            rest = {**configuration}
            rest.pop(_JARS, None)
            conf = SparkConf().setAll(list(rest.items()))
            silence_accumulators(SparkContext(conf=conf, gateway=gateway))
    except (Py4JError, OSError) as error:
        message = one_line(error).rstrip(".")
        # PySpark would reuse this gateway for the next table of a run.
        end_jvm(gateway)
        raise SetupError(
            f"Spark did not start on LAKEHOUSE_SPARK_MASTER={settings.spark_master}: {message}.",
            next_step=(
                "Correct that setting or LAKEHOUSE_DRIVER_HOST, see docs/cluster.md; all that"
                f" Spark logged is in {log_file(settings)}."
            ),
        ) from error


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keep the handler of Ctrl-C: PySpark's calls the JVM during another call, which fails."""
    handler = signal.getsignal(signal.SIGINT)
    yield
    if current_thread() is main_thread():
        signal.signal(signal.SIGINT, handler)
