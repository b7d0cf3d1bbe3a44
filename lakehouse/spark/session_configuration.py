"""The configuration of Spark sessions: local, on a cluster, and of Spark Connect clients.

It overrides PYSPARK_SUBMIT_ARGS and `spark-defaults.conf`; LAKEHOUSE_SPARK_CONF overrides it.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from lakehouse.iceberg.catalog.iceberg_release import is_spark_3
from lakehouse.settings import Settings
from lakehouse.spark import jars
from lakehouse.spark.connect_server import EXTENSIONS, EXTENSIONS_KEY
from lakehouse.spark.executor_configuration import (
    ARCHIVES,
    executor_configuration,
    python_configuration,
)
from lakehouse.spark.s3a import s3a_session_configuration
from lakehouse.spark.spark_folders import temporary_folder

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_CLASS_PATH = "spark.driver.extraClassPath"
_LISTS = {
    "spark.jars": ",",
    ARCHIVES: ",",
    _CLASS_PATH: ":",
    "spark.executorEnv.PYTHONPATH": ":",
}
"""Lists, with their separators: values of LAKEHOUSE_SPARK_CONF are appended."""
_LOG4J = Path(__file__).with_name("log4j2.properties")
_CODE_CACHE = "-XX:ReservedCodeCacheSize=512m"
"""Maximum size of compiled code; with the default, a long-running Spark fills it and exits."""
_SHUFFLE_PARTITIONS = "8"
_LOCAL = re.compile(r"local(\[.*\])?")
_CLOSED = {
    # Otherwise two ports of the driver accept connections from all local processes. Spark creates
    # the secret itself; a cluster has its own settings and secret.
    "spark.authenticate": "true",
}


def session_configuration(
    settings: Settings,
    *,
    is_server: bool = False,
    archive: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the configuration of a session, without its catalog.

    :param is_server: whether it is for a server that this process starts.
    :param archive: see `archive_configuration`; only for a start of Spark.
    """
    shared = shared_configuration() | python_configuration(settings)
    if settings.spark_remote:
        return {"spark.remote": settings.spark_remote, **shared}
    master = settings.spark_master
    temporary = temporary_folder(settings, is_server=is_server)
    there = (
        _in_this_process(settings, temporary)
        if master.startswith("local")
        else _on_a_cluster(settings)
    )
    ours = {
        **_embedded(settings, temporary),
        **there,
        **(archive or {}),
        **s3a_session_configuration(settings),
        **(_CLOSED if _LOCAL.fullmatch(master) else {}),
        **shared,
    }
    return _with_given(ours, dict(settings.cluster.configuration))


def driver_memory(settings: Settings) -> str:
    """Return the memory of a driver on this machine."""
    return settings.spark_memory or settings.default_spark_memory


def _with_given(ours: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the configuration with that of LAKEHOUSE_SPARK_CONF."""
    merged = {**ours, **given}
    for name, separator in _LISTS.items():
        if name in ours and name in given:
            merged[name] = f"{ours[name]}{separator}{given[name]}"
    if JAVA_OPTIONS in ours and JAVA_OPTIONS in given:
        # Java takes the last of two values: the temporary folder stays in the home.
        merged[JAVA_OPTIONS] = f"{given[JAVA_OPTIONS]} {ours[JAVA_OPTIONS]}"
    return merged


def shared_configuration() -> dict[str, str]:
    """Return the configuration of all sessions, also on a Spark that others started."""
    shared = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        # Its time doubles with each cast column that a rule reads: seconds for twenty rules.
        # Dynamic pruning finds filters on join keys at run time.
        "spark.sql.constraintPropagation.enabled": "false",
    }
    if is_spark_3():
        # Otherwise rows that Python provides pass through it again at each read.
        shared["spark.sql.execution.arrow.pyspark.enabled"] = "true"
    return shared


def with_java_options(
    configuration: Mapping[str, str], options: Iterable[str]
) -> dict[str, str]:
    """Add JVM options to a configuration."""
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
        # By default, Hadoop makes written files readable for other users, despite the umask.
        "spark.hadoop.fs.permissions.umask-mode": "077",
        EXTENSIONS_KEY: EXTENSIONS,
        # The default is a Hive metastore, which writes into the working directory.
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": f"file://{settings.home / 'spark'}",
        # A late file needs 240 generated classes; with the default of 100, each was compiled again.
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
        # `spark.jars` would copy 130 MB at each start, and take 1.5 s longer.
        _CLASS_PATH: _class_path(settings),
        # An upper bound: adaptive execution coalesces partitions below a megabyte. By default it
        # coalesces larger ones too: the last of three on two cores leaves a core idle.
        "spark.sql.shuffle.partitions": _SHUFFLE_PARTITIONS,
        "spark.sql.adaptive.coalescePartitions.minPartitionNum": _SHUFFLE_PARTITIONS,
    }


def _class_path(settings: Settings) -> str:
    return ":".join(str(jars.path(settings, jar)) for jar in jars.pinned(settings))


def _where_functions_are(settings: Settings) -> dict[str, str]:
    """Return the path on which Python workers find the project's modules."""
    root = settings.project_root
    return {"spark.executorEnv.PYTHONPATH": str(root)} if root else {}


def _on_a_cluster(settings: Settings) -> dict[str, str]:
    sent = (jars.path(settings, jar).as_uri() for jar in jars.pinned(settings))
    host = settings.cluster.driver_host
    return {
        "spark.jars": ",".join(sent),
        # The class archive requires this class path; without it, the start takes 1.5 times as long.
        _CLASS_PATH: _class_path(settings),
        # Shown to other users of the cluster.
        "spark.app.name": f"lakehouse {settings.title}",
        "spark.ui.enabled": "true",
        **({"spark.driver.host": host} if host else {}),
        **executor_configuration(settings),
    }
