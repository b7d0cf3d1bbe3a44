"""What a Spark Connect server that others start must bring, as its clients cannot: jars, Iceberg's
extensions, a file system for the bucket, and how it has executors.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lakehouse.errors import SetupError
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.spark_errors import one_line
from lakehouse.runtime import jars
from lakehouse.runtime.executor_configuration import (
    CORES_MAX,
    EXECUTOR_CORES,
    executor_configuration,
)
from lakehouse.runtime.jar_download import IN_SPARK_OR_ICEBERG
from lakehouse.runtime.s3a import s3a_session_configuration
from lakehouse.runtime.spark_address import place_of
from lakehouse.runtime.spark_master import STANDALONE, MasterState
from lakehouse.settings import Settings
from lakehouse.tables.quoting import identifier

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTENSIONS_KEY = "spark.sql.extensions"
EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
SERVER_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_NO_CLASS = re.compile(
    r"catalog plugin class|PLUGIN_CLASS|ClassNotFoundException|NoClassDefFoundError"
)
_OF_AWS = re.compile(r"software[./]amazon[./]awssdk|org[./]apache[./]iceberg[./]aws[./]shaded")
_NEXT_STEP = "`lakehouse connect-conf` prints what the server is to be started with."


def server_configuration(
    settings: Settings, jar_folder: str | None = None, state: MasterState | None = None
) -> dict[str, str]:
    """Return what a server is started with for a deployment; no credentials are in it.

    :param jar_folder: where the jars lie on the server; it fetches them itself unless it is said.
    :param state: what the master said that the settings name, where one did.
    """
    return {
        **_jars(settings, jar_folder),
        EXTENSIONS_KEY: EXTENSIONS,
        # The default asks for a Hive metastore, which writes into the working directory.
        "spark.sql.catalogImplementation": "in-memory",
        **Catalog.of(settings).spark_configuration,
        **s3a_session_configuration(settings),
        # By itself it keeps all cores of a standalone cluster for as long as it lives.
        **executor_configuration(settings, state),
    }


def bounds_to_choose(settings: Settings, configuration: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of what keeps a server from taking a whole standalone cluster, where it may
    be on one whose cores nobody told.
    """
    may_be_standalone = settings.spark_master.startswith((STANDALONE, "local"))
    if CORES_MAX in configuration or not may_be_standalone:
        return ()
    return tuple(name for name in (CORES_MAX, EXECUTOR_CORES) if name not in configuration)


def require_server(session: "SparkSession", settings: Settings, catalog: Catalog) -> None:
    """Make sure that the server of a session has what tables need.

    :raises SetupError: says in one line what is missing.
    """
    if not has_extensions(session):
        raise lacking(settings, f"Iceberg's extensions ({EXTENSIONS_KEY})")
    try:
        ask_iceberg(session, catalog)
    except Exception as error:
        if _NO_CLASS.search(str(error)):
            raise lacking(settings, _jar_of_class(settings, str(error))) from error
        raise SetupError(
            f"The Spark server at {place_of(settings.spark_remote or '')} cannot open the"
            f" catalog: {one_line(error).rstrip('.')}.",
            next_step=_NEXT_STEP,
        ) from error


def _jar_of_class(settings: Settings, said: str) -> str:
    """Return the jar in which what was not found stands."""
    runtime, bundle, *_ = jars.pinned(settings)
    if _OF_AWS.search(said):
        return f"the jar of Iceberg for AWS ({bundle.coordinate})"
    return f"the jar of Iceberg ({runtime.coordinate})"


def has_extensions(session: "SparkSession") -> bool:
    """Whether a Spark was started with Iceberg's extensions."""
    return EXTENSIONS in (session.conf.get(EXTENSIONS_KEY, "") or "")


def ask_iceberg(session: "SparkSession", catalog: Catalog) -> str:
    """Let a session open a catalog that it knows, by asking which Iceberg it has, and return
    that; whatever Spark says is raised.
    """
    asked = f"SELECT {identifier(catalog.name)}.system.iceberg_version()"
    ((version,),) = session.sql(asked).collect()
    return str(version)


def lacking(settings: Settings, what: str) -> SetupError:
    """Return the error of a server that lacks something."""
    place = place_of(settings.spark_remote or "")
    return SetupError(f"The Spark server at {place} lacks {what}.", next_step=_NEXT_STEP)


def _jars(settings: Settings, folder: str | None) -> dict[str, str]:
    pinned = jars.pinned(settings)
    if folder:
        paths = (f"{folder.rstrip('/')}/{jar.file_name}" for jar in pinned)
        return {"spark.jars": ",".join(paths)}
    fetched = {"spark.jars.packages": ",".join(jar.coordinate for jar in pinned)}
    if settings.deployment == "aws":
        # Hundreds of megabytes that nothing uses.
        fetched["spark.jars.excludes"] = ",".join(IN_SPARK_OR_ICEBERG)
    return fetched
