"""The Spark session: one JVM for each process, started on first use, or a Spark Connect server.

dagster-pyspark's resource holds it. Nothing is resolved or downloaded at its start.
"""

import gc
import logging
import re
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import RLock, current_thread, main_thread
from typing import TYPE_CHECKING, BinaryIO

from lakehouse.cluster_settings import DRIVERS, ClusterSettings
from lakehouse.errors import SettingsError, SetupError
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.error_explanations import known_error
from lakehouse.iceberg.metadata.pyspark_internals import (
    LOGS_WITH_VALUES,
    end_jvm,
    has_context,
    launch_jvm,
    release_at_exit,
    set_connect_retries,
)
from lakehouse.iceberg.metadata.spark_errors import one_line
from lakehouse.iceberg.metadata.spark_line import is_spark_3
from lakehouse.runtime import jars, jvm
from lakehouse.runtime.connect_server import EXTENSIONS, EXTENSIONS_KEY, require_server
from lakehouse.runtime.executors import require_executor, spark_page
from lakehouse.runtime.jvm_class_archive import archive_options
from lakehouse.runtime.jvm_compilers import compiler_options
from lakehouse.runtime.s3a import s3a_session_configuration
from lakehouse.runtime.spark_address import require_connect, require_master
from lakehouse.runtime.spark_master import MasterState, executor_configuration, read_master
from lakehouse.runtime.spark_properties import remove_properties, write_properties
from lakehouse.runtime.temporary_folders import prepare_temporary_folder, temporary_folder
from lakehouse.settings import Settings
from lakehouse.tables.quoting import identifier

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG4J = Path(__file__).with_name("log4j2.properties")
_LOG_LIMIT_BYTES = 10_000_000
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LISTS = {"spark.jars": ",", "spark.driver.extraClassPath": ":"}
"""Configuration that is a list, and by what its entries are parted."""
_CODE_CACHE = "-XX:ReservedCodeCacheSize=512m"
"""Room for the code that Java compiled, taken as it is needed. By itself Java keeps 240 MB, and
with the first compiler alone 48, which a Spark that lives fills in minutes; it ends then.
"""
_SHUFFLE_PARTITIONS = "8"
_CONNECT_RETRIES = 5
"""After pauses of 0.05, 0.2, 0.8, 3.2 and 12.8 seconds."""
_LOCAL = re.compile(r"local(\[.*\])?")
_CLOSED = {
    # The driver listens on two more ports, which answered any process of the machine. Here
    # Spark makes the secret itself, and keeps it to itself; a cluster has settings, and a
    # secret, of its own.
    "spark.authenticate": "true",
}
_opening = RLock()
_sessions: dict[tuple[str, str], "SparkSession"] = {}
_pages: dict[tuple[str, str], str] = {}


def session_configuration(
    settings: Settings, *, is_server: bool = False, state: MasterState | None = None
) -> dict[str, str]:
    """Return what a session is started with, whatever its catalog: on Connect no more than a
    client may set.

    :param is_server: it is for a server that this process starts.
    :param state: what a standalone master said of its workers, where one did.
    """
    shared = _everywhere()
    if settings.cluster.executor_python:
        shared["spark.sql.execution.pyspark.python"] = settings.cluster.executor_python
    if settings.spark_remote:
        return {"spark.remote": settings.spark_remote, **shared}
    master = settings.spark_master
    temporary = temporary_folder(settings, is_server=is_server)
    there = (
        _in_this_process(settings, temporary)
        if master.startswith("local")
        else _on_a_cluster(settings, state)
    )
    ours = {
        **_embedded(settings, temporary),
        **there,
        **s3a_session_configuration(settings),
        **(_CLOSED if _LOCAL.fullmatch(master) else {}),
        **shared,
    }
    return {**ours, **_besides(ours, settings.cluster)}


def _besides(ours: Mapping[str, str], cluster: ClusterSettings) -> dict[str, str]:
    """Return the configuration that somebody gave, of lists and options of Java with ours, which
    nothing works without.
    """
    theirs = dict(cluster.configuration)
    for name, separator in _LISTS.items():
        if name in ours and name in theirs:
            theirs[name] = f"{ours[name]}{separator}{theirs[name]}"
    if _JAVA_OPTIONS in theirs:
        # Of two values of one option Java takes the last, and the temporary folder is to be that
        # of the home.
        theirs[_JAVA_OPTIONS] = f"{theirs[_JAVA_OPTIONS]} {ours[_JAVA_OPTIONS]}"
    return theirs


def _everywhere() -> dict[str, str]:
    """Return what each session has, whoever started its Spark."""
    shared = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        # It takes time that doubles with each cast column that a rule reads: seconds for twenty
        # rules. What it would find, filters on the keys of joins, dynamic pruning finds at run
        # time, where it matters.
        "spark.sql.constraintPropagation.enabled": "false",
    }
    if is_spark_3():
        # Otherwise rows that Python gives go through it again at each read.
        shared["spark.sql.execution.arrow.pyspark.enabled"] = "true"
    return shared


def log_file(settings: Settings) -> Path:
    """Where Spark's own words go."""
    return settings.home / "logs" / "spark.log"


def open_session(
    settings: Settings,
    catalog: Catalog,
    *,
    java_options: Sequence[str] | None = None,
    is_own_server: bool = False,
) -> "SparkSession":
    """Return this process's session for a catalog, by which names in SQL are read.

    The first call starts the JVM, or connects; later ones cost nothing. Spark opens a catalog
    once for a session and name, so another catalog (tests have two of one name) gets a session
    of its own on the same JVM.

    :param java_options: what the JVM is started with besides, in place of its archive of
        classes and its choice of compilers.
    :param is_own_server: the Spark Connect server is one that the lakehouse started, which has
        all that it needs.
    :raises SetupError: when Java or a jar is missing or damaged, when the JVM does not start,
        when nothing answers where the settings say that Spark is, when a server there lacks
        something, or when a cluster has no executor for this.
    """
    key = (settings.spark_remote or "", repr(sorted(catalog.spark_configuration.items())))
    with _opening:
        if key not in _sessions:
            if settings.spark_remote:
                require_connect(settings.spark_remote)
            _keep_values_out_of_logs()
            is_first = not _sessions
            session = _first(settings, java_options) if is_first else _another(settings)
            if settings.spark_remote:
                _configure(session, settings.cluster)
            register(session, catalog)
            if is_first and settings.spark_remote and not is_own_server:
                require_server(session, settings, catalog)
            if is_first and (settings.spark_remote or settings.is_on_cluster):
                require_executor(session, settings)
                _pages[key] = spark_page(session, settings)
            session.conf.set("spark.sql.defaultCatalog", catalog.name)
            _sessions[key] = session
        return _sessions[key]


def page_of_process() -> str:
    """Return where the web page of this process's Spark is, on a cluster; nothing where it has
    none.
    """
    return next(iter(_pages.values()), "")


def open_platform_session(catalog: Catalog) -> "SparkSession":
    """Return the session of a job, whose Spark and jars are those of the platform.

    :raises SetupError: when that Spark has no Iceberg.
    """
    from pyspark.sql import SparkSession

    _keep_values_out_of_logs()
    configuration = {
        EXTENSIONS_KEY: EXTENSIONS,
        **_everywhere(),
        **catalog.spark_configuration,
    }
    session = (
        SparkSession.builder.appName("lakehouse").config(map={**configuration}).getOrCreate()
    )
    if EXTENSIONS not in (session.conf.get(EXTENSIONS_KEY, "") or ""):
        raise _no_iceberg("it was started without Iceberg's extensions")
    register(session, catalog)
    session.conf.set("spark.sql.defaultCatalog", catalog.name)
    try:
        session.sql(f"SELECT {identifier(catalog.name)}.system.iceberg_version()").collect()
    except Exception as error:
        raise _no_iceberg(one_line(error)) from error
    return session


def _no_iceberg(problem: str) -> SetupError:
    return SetupError(
        f"The Spark of this job has no Iceberg: {problem.rstrip('.')}; expected its jars and its"
        " extensions.",
        next_step="Start a job of Glue with --datalake-formats iceberg; of EMR, with its jars.",
    )


def _keep_values_out_of_logs() -> None:
    """Silence PySpark's own log of errors: it prints the value that could not be read, and
    whoever asked is told.
    """
    # Spark 3.5 has no such log.
    if find_spec("pyspark.logger") is None:
        return
    from pyspark.logger import PySparkLogger

    for name in LOGS_WITH_VALUES:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


def with_java_options(
    configuration: Mapping[str, str], options: Iterable[str]
) -> dict[str, str]:
    """Return the configuration of a session whose JVM is started with more options."""
    more = " ".join(map(_quoted, options))
    return {
        **configuration,
        _JAVA_OPTIONS: f"{configuration.get(_JAVA_OPTIONS, '')} {more}".strip(),
    }


def close_jvm() -> None:
    """End the JVM of this process, and wait until it is gone: what it does at its end is
    done.
    """
    _sessions.clear()
    _pages.clear()
    end_jvm()


def let_go(session: "SparkSession") -> None:
    """Let the JVM of a session remove the files of what nobody reads any more, which it begins to
    do; by itself it does after half an hour, or when its memory is full.

    On a cluster its executors hear it, and not the driver.
    """
    # What Python holds on to, Java does too.
    gc.collect()
    session.sql("SELECT java_method('java.lang.System', 'gc')").collect()


def register(session: "SparkSession", catalog: Catalog) -> None:
    """Make a running session know a catalog; Spark opens one when its name is first used."""
    for key, value in catalog.spark_configuration.items():
        session.conf.set(key, value)


def _configure(session: "SparkSession", cluster: ClusterSettings) -> None:
    """Set the configuration that somebody gave on a session of Spark Connect.

    :raises SettingsError: when it is to be set where the server is started.
    """
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


def _embedded(settings: Settings, temporary: Path) -> dict[str, str]:
    return {
        "spark.app.name": "lakehouse",
        "spark.master": settings.spark_master,
        "spark.driver.memory": settings.spark_memory,
        _JAVA_OPTIONS: _java_options(temporary),
        # Hadoop opens what it writes to others by itself, whatever the process is told.
        "spark.hadoop.fs.permissions.umask-mode": "077",
        EXTENSIONS_KEY: EXTENSIONS,
        # The default asks for a Hive metastore, which writes into the working directory.
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": f"file://{settings.home / 'spark'}",
        # The default keeps 100 classes. A late file needs 240, so that each came anew to the
        # compilers of Java.
        "spark.sql.codegen.cache.maxEntries": "2000",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def _java_options(temporary: Path) -> str:
    log4j, folder = (
        f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}",
        f"-Djava.io.tmpdir={temporary}",
    )
    return f"{_quoted(log4j)} {_quoted(folder)} -Duser.timezone=UTC {_CODE_CACHE}"


def _quoted(option: str) -> str:
    return '"' + option.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _in_this_process(settings: Settings, temporary: Path) -> dict[str, str]:
    return {
        "spark.local.dir": str(temporary),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Read where they are; `spark.jars` would copy 130 MB at each start, and take 1.5 s
        # longer.
        "spark.driver.extraClassPath": ":".join(
            str(jars.path(settings, jar)) for jar in jars.pinned(settings)
        ),
        # An upper bound: adaptive execution joins small ones, of less than a megabyte. By
        # itself it joins others too, until one is left for each core or a few more: of three on
        # two cores, the last has a core to itself.
        "spark.sql.shuffle.partitions": _SHUFFLE_PARTITIONS,
        "spark.sql.adaptive.coalescePartitions.minPartitionNum": _SHUFFLE_PARTITIONS,
    }


def _on_a_cluster(settings: Settings, state: MasterState | None) -> dict[str, str]:
    sent = (jars.path(settings, jar).as_uri() for jar in jars.pinned(settings))
    return {
        "spark.jars": ",".join(sent),
        # By which others there see who holds what.
        "spark.app.name": f"lakehouse {settings.title}",
        "spark.ui.enabled": "true",
        **_reached(settings.cluster),
        **executor_configuration(settings, state),
    }


def _reached(cluster: ClusterSettings) -> dict[str, str]:
    """Return how executors reach the driver: ports that a firewall may be told of, and a few more
    of each kind for others on this machine.
    """
    reached = {}
    if cluster.driver_host:
        reached["spark.driver.host"] = cluster.driver_host
    if cluster.driver_port:
        for number, name in enumerate(("driver", "driver.blockManager", "ui")):
            reached[f"spark.{name}.port"] = str(cluster.driver_port + number * DRIVERS)
        reached["spark.port.maxRetries"] = str(DRIVERS - 1)
    return reached


def _first(settings: Settings, java_options: Sequence[str] | None) -> "SparkSession":
    from dagster_pyspark import LazyPySparkResource

    state = (
        None if settings.spark_remote else read_master(settings.cluster, settings.spark_master)
    )
    configuration = session_configuration(settings, state=state)
    if settings.spark_remote:
        return _connected(LazyPySparkResource(spark_config=configuration).spark_session)
    _start_jvm(settings, configuration, java_options)
    session: SparkSession = LazyPySparkResource(spark_config=configuration).spark_session
    return session


def _connected(session: "SparkSession") -> "SparkSession":
    """Let a client give up on a server that is gone after a quarter of a minute, by itself it
    does after ten; and let the server forget it at its end.
    """
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
    """Start the JVM with its own output sent to a file, and the context that the session is
    then built on.
    """
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError

    if has_context():
        return
    require_master(settings.spark_master)
    jars.require(settings)
    chosen = jvm.prepare(settings)
    prepare_temporary_folder(settings)
    if java_options is None:
        java_options = [*archive_options(settings, chosen), *compiler_options(settings)]
    configuration = with_java_options(configuration, java_options)
    folder, started_at = temporary_folder(settings), log_size(settings)
    try:
        with open_log(settings) as output:
            file = write_properties(settings, folder, configuration)
            gateway = launch_jvm(file, output, settings.cluster.pyspark_arguments)
    except PySparkRuntimeError as error:
        raise SetupError(
            f"The JVM of Spark did not start: {last_words(settings, started_at)}",
            next_step=(
                "`lakehouse doctor` shows which Java is used; all of what it said is in"
                f" {log_file(settings)}."
            ),
        ) from error
    finally:
        remove_properties(folder)
    try:
        with _own_interrupts():
            conf = SparkConf().setAll(list(configuration.items()))
            SparkContext(conf=conf, gateway=gateway)
    except Py4JError as error:
        gateway.shutdown()
        raise SetupError(
            f"Spark did not start on LAKEHOUSE_SPARK_MASTER={settings.spark_master}:"
            f" {one_line(error).rstrip('.')}.",
            next_step=(
                "Correct the setting, or unset it for local[*]; all that Spark said is in"
                f" {log_file(settings)}."
            ),
        ) from error


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keep what Ctrl-C does: PySpark's handler calls the JVM in the middle of a call to it,
    which ends in an error.
    """
    handler = signal.getsignal(signal.SIGINT)
    yield
    if current_thread() is main_thread():
        signal.signal(signal.SIGINT, handler)


def open_log(settings: Settings) -> BinaryIO:
    """Open Spark's log at its end."""
    log_file(settings).parent.mkdir(parents=True, exist_ok=True)
    return log_file(settings).open("ab")


def log_size(settings: Settings) -> int:
    """Return where the log ends before a start, once one that is too long was put aside."""
    log = log_file(settings)
    if log.exists() and log.stat().st_size > _LOG_LIMIT_BYTES:
        log.replace(log.with_suffix(".log.1"))
    return log.stat().st_size if log.exists() else 0


def last_words(settings: Settings, started_at: int) -> str:
    """Return the end of what was said from a point of the log on."""
    with log_file(settings).open("rb") as file:
        file.seek(started_at)
        lines = [line.strip() for line in file.read().decode(errors="replace").split("\n")]
    text = " ".join(line for line in lines if line and not line.startswith(("at ", "... ")))
    return known_error(text) or text[-500:] or "it said nothing."
