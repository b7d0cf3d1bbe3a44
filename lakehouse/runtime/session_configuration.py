"""What a Spark is started with: the configuration of a session on one machine, on a cluster, and of
a client of Spark Connect.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from lakehouse.cluster_settings import DRIVERS, ClusterSettings
from lakehouse.iceberg.metadata.spark_line import is_spark_3
from lakehouse.runtime import jars
from lakehouse.runtime.configuration_order import (
    CLASS_PATH,
    JAVA_OPTIONS,
    driver_memory,
    in_order,
)
from lakehouse.runtime.connect_server import EXTENSIONS, EXTENSIONS_KEY
from lakehouse.runtime.executor_configuration import executor_configuration
from lakehouse.runtime.python_of_executors import python_configuration
from lakehouse.runtime.s3a import s3a_session_configuration
from lakehouse.runtime.spark_master import MasterState
from lakehouse.runtime.spark_properties import told_configuration
from lakehouse.runtime.temporary_folders import temporary_folder
from lakehouse.settings import Settings

_LOG4J = Path(__file__).with_name("log4j2.properties")
_CODE_CACHE = "-XX:ReservedCodeCacheSize=512m"
"""Room for the code that Java compiled, taken as it is needed. By itself Java keeps 240 MB, and
with the first compiler alone 48, which a Spark that lives fills in minutes; it ends then.
"""
_SHUFFLE_PARTITIONS = "8"
_LOCAL = re.compile(r"local(\[.*\])?")
_CLOSED = {
    # The driver listens on two more ports, which answered any process of the machine. Here
    # Spark makes the secret itself, and keeps it to itself; a cluster has settings, and a
    # secret, of its own.
    "spark.authenticate": "true",
}


def session_configuration(
    settings: Settings,
    *,
    is_server: bool = False,
    state: MasterState | None = None,
    archive: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return what a session is started with, whatever its catalog: on Connect no more than a
    client may set.

    :param is_server: it is for a server that this process starts.
    :param state: what a standalone master said of its workers, where one did.
    :param archive: how executors are sent the archive of the settings, see
        `archive_configuration`: it may be fetched for it, so that only a start of Spark has it.
    """
    shared = shared_configuration() | python_configuration(settings)
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
        **(archive or {}),
        **s3a_session_configuration(settings),
        **(_CLOSED if _LOCAL.fullmatch(master) else {}),
        **shared,
    }
    return in_order(settings, ours)


def shared_configuration() -> dict[str, str]:
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


def with_java_options(
    configuration: Mapping[str, str], options: Iterable[str]
) -> dict[str, str]:
    """Return the configuration of a session whose JVM is started with more options."""
    more = " ".join(map(_quoted, options))
    return {
        **configuration,
        JAVA_OPTIONS: f"{configuration.get(JAVA_OPTIONS, '')} {more}".strip(),
    }


def _embedded(settings: Settings, temporary: Path) -> dict[str, str]:
    return {
        "spark.app.name": "lakehouse",
        "spark.master": settings.spark_master,
        "spark.driver.memory": driver_memory(settings),
        JAVA_OPTIONS: _java_options(temporary),
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
        **_where_functions_are(settings),
        "spark.local.dir": str(temporary),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Read where they are; `spark.jars` would copy 130 MB at each start, and take 1.5 s
        # longer.
        CLASS_PATH: _class_path(settings),
        # An upper bound: adaptive execution joins small ones, of less than a megabyte. By
        # itself it joins others too, until one is left for each core or a few more: of three on
        # two cores, the last has a core to itself.
        "spark.sql.shuffle.partitions": _SHUFFLE_PARTITIONS,
        "spark.sql.adaptive.coalescePartitions.minPartitionNum": _SHUFFLE_PARTITIONS,
    }


def _class_path(settings: Settings) -> str:
    return ":".join(str(jars.path(settings, jar)) for jar in jars.pinned(settings))


def _where_functions_are(settings: Settings) -> dict[str, str]:
    """Return by what Python that Spark starts finds the modules of the project, as this process
    does: by itself in the working directory alone, which may be another folder of the project.
    """
    root = settings.project_root
    return {"spark.executorEnv.PYTHONPATH": str(root)} if root else {}


def _on_a_cluster(settings: Settings, state: MasterState | None) -> dict[str, str]:
    sent = (jars.path(settings, jar).as_uri() for jar in jars.pinned(settings))
    told = {**told_configuration(settings), **dict(settings.cluster.configuration)}
    return {
        "spark.jars": ",".join(sent),
        # By that class path alone the archive of Java's classes fits, without which the driver
        # takes half as long again to start.
        CLASS_PATH: _class_path(settings),
        # By which others there see who holds what.
        "spark.app.name": f"lakehouse {settings.title}",
        "spark.ui.enabled": "true",
        **_reached(settings.cluster),
        **executor_configuration(settings, state, told),
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
