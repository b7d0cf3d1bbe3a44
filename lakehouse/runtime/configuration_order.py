"""Whose configuration of Spark counts: LAKEHOUSE_SPARK_CONF before what the lakehouse needs, that
before PYSPARK_SUBMIT_ARGS, this before `spark-defaults.conf`, and all before what the lakehouse
chooses by itself.
"""

import logging
from collections.abc import Iterator, Mapping

from lakehouse.runtime.python_of_executors import ARCHIVES
from lakehouse.runtime.spark_properties import default_configuration, told_configuration
from lakehouse.runtime.submitted_arguments import SubmittedArguments
from lakehouse.settings import Settings

_log = logging.getLogger(__name__)

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
CLASS_PATH = "spark.driver.extraClassPath"
_LISTS = {
    "spark.jars": ",",
    ARCHIVES: ",",
    CLASS_PATH: ":",
    "spark.executorEnv.PYTHONPATH": ":",
}
"""Configuration that is a list, and by what its entries are parted."""
_JOINED = (JAVA_OPTIONS, *_LISTS)
_MEMORY = "spark.driver.memory"
_CHOSEN = {
    "spark.app.name",
    "spark.hadoop.fs.s3a.aws.credentials.provider",
    "spark.hadoop.fs.s3a.directory.marker.retention",
    "spark.sql.adaptive.coalescePartitions.minPartitionNum",
    "spark.sql.codegen.cache.maxEntries",
    "spark.sql.shuffle.partitions",
    "spark.ui.showConsoleProgress",
}
"""What works otherwise too. What an application asks of a cluster is chosen where it is made, in
`executor_configuration`.
"""
_CHOSEN_ON_CLUSTER = {"spark.ui.enabled"}
"""On one machine it stays off: a page answers all of the machine's users."""
_SET_HERE = ("spark.executor.", "spark.dynamicAllocation.", "spark.cores.max", _MEMORY)
_SET_HERE_ON_CLUSTER = (
    "spark.master",
    "spark.driver.host",
    "spark.driver.port",
    "spark.driver.blockManager.port",
    "spark.ui.port",
    "spark.port.maxRetries",
)
"""What settings of the lakehouse say, if anything of the lakehouse does."""


def in_order(settings: Settings, ours: Mapping[str, str]) -> dict[str, str]:
    """Return what a Spark of this machine is started with beside its defaults file: the
    lakehouse's configuration, without what it only chose and others said, and what was said by
    arguments and settings.

    Lists and options of Java are those of the lakehouse, which nothing works without, and theirs.
    """
    told = told_configuration(settings)
    submitted = SubmittedArguments.parse(settings.cluster.pyspark_arguments).configuration
    chosen = _chosen(settings)
    kept = {
        name: value for name, value in ours.items() if name not in told or name not in chosen
    }
    theirs = {
        **{name: told[name] for name in _JOINED if name in told and name in kept},
        **{name: value for name, value in submitted.items() if name not in kept},
        **dict(settings.cluster.configuration),
    }
    return {**kept, **_joined(kept, theirs)}


def overruled(settings: Settings, used: Mapping[str, str]) -> str:
    """Name what `spark-defaults.conf` or PYSPARK_SUBMIT_ARGS say otherwise than the lakehouse needs
    it; nothing where all that they say counts.

    :param used: what Spark is started with.
    """
    names = sorted(_overruled(settings, used))
    if not names:
        return ""
    return (
        f"spark-defaults.conf or PYSPARK_SUBMIT_ARGS set {', '.join(names)}, which stays as the"
        " lakehouse needs it"
    )


def warn_of_overruled(settings: Settings, used: Mapping[str, str]) -> None:
    """Log what of others' configuration does not count."""
    if said := overruled(settings, used):
        _log.warning("%s.", said)


def _overruled(settings: Settings, used: Mapping[str, str]) -> Iterator[str]:
    given = dict(settings.cluster.configuration)
    by_settings = _SET_HERE + (_SET_HERE_ON_CLUSTER if settings.is_on_cluster else ())
    for name, value in told_configuration(settings).items():
        is_said_otherwise = name in (*_JOINED, *given) or name.startswith(by_settings)
        if used.get(name, value) != value and not is_said_otherwise:
            yield name


def without_told(settings: Settings, chosen: Mapping[str, str]) -> dict[str, str]:
    """Return what the lakehouse chose, without what `spark-defaults.conf` says of it."""
    told = default_configuration(settings)
    return {name: value for name, value in chosen.items() if name not in told}


def driver_memory(settings: Settings) -> str:
    """Return the memory of a driver of this machine."""
    told = told_configuration(settings).get(_MEMORY)
    return settings.spark_memory or told or settings.default_spark_memory


def _chosen(settings: Settings) -> set[str]:
    chosen = _CHOSEN | (_CHOSEN_ON_CLUSTER if settings.is_on_cluster else set())
    return chosen if settings.spark_memory else chosen | {_MEMORY}


def _joined(ours: Mapping[str, str], theirs: dict[str, str]) -> dict[str, str]:
    for name, separator in _LISTS.items():
        if name in ours and name in theirs:
            theirs[name] = f"{ours[name]}{separator}{theirs[name]}"
    if JAVA_OPTIONS in theirs and JAVA_OPTIONS in ours:
        # Of two values of one option Java takes the last, and the temporary folder is to be that
        # of the home.
        theirs[JAVA_OPTIONS] = f"{theirs[JAVA_OPTIONS]} {ours[JAVA_OPTIONS]}"
    return theirs
