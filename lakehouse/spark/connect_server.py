"""Requirements of a Spark Connect server, which its clients cannot provide."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lakehouse.errors import SetupError
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.frames.spark_errors import one_line
from lakehouse.settings import Settings
from lakehouse.spark import jars
from lakehouse.spark.executor_configuration import (
    CORES_MAX,
    EXECUTOR_CORES,
    executor_configuration,
)
from lakehouse.spark.jar_download import IN_SPARK_OR_ICEBERG
from lakehouse.spark.s3a import s3a_session_configuration
from lakehouse.spark.spark_address import place_of
from lakehouse.tables.quoting import identifier

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTENSIONS_KEY = "spark.sql.extensions"
EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
SERVER_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r"})
_NEXT_STEP = "`lakehouse connect-conf` prints what the server is to be started with."


def server_configuration(settings: Settings, jar_folder: str | None = None) -> dict[str, str]:
    """Return the configuration of a server for a deployment, without credentials.

    :param jar_folder: folder of the jars on the server; without it, the server downloads them.
    """
    return {
        **_jars(settings, jar_folder),
        EXTENSIONS_KEY: EXTENSIONS,
        # The default asks for a Hive metastore, which writes into the working directory.
        "spark.sql.catalogImplementation": "in-memory",
        **Catalog.of(settings).spark_configuration,
        **s3a_session_configuration(settings),
        # By default it keeps all cores of a standalone cluster until it exits.
        **executor_configuration(settings),
    }


def properties_text(configuration: Mapping[str, str]) -> str:
    """Return a configuration in the format of a properties file."""
    lines = (f"{name}={value.translate(_ESCAPES)}\n" for name, value in configuration.items())
    return "".join(lines)


def bounds_to_choose(settings: Settings, configuration: Mapping[str, str]) -> tuple[str, ...]:
    """Return the settings that limit a server's cores on a cluster of unknown size."""
    if settings.is_on_cluster:
        return ()
    return tuple(name for name in (CORES_MAX, EXECUTOR_CORES) if name not in configuration)


def require_server(session: "SparkSession", settings: Settings, catalog: Catalog) -> None:
    """Raise SetupError if the server of a session does not fulfill the requirements."""
    if not has_extensions(session):
        raise lacking(settings, f"Iceberg's extensions ({EXTENSIONS_KEY})")
    try:
        iceberg_version(session, catalog)
    except Exception as error:
        needed = ", ".join(jar.coordinate for jar in jars.pinned(settings))
        problem = one_line(error).rstrip(".")
        raise lacking(
            settings, f"a jar or a setting of the catalog ({needed}): {problem}"
        ) from error


def has_extensions(session: "SparkSession") -> bool:
    """Return whether Spark was started with Iceberg's extensions."""
    return EXTENSIONS in (session.conf.get(EXTENSIONS_KEY, "") or "")


def iceberg_version(session: "SparkSession", catalog: Catalog) -> str:
    """Return the Iceberg version of a session, which opens the catalog; raises Spark's errors."""
    query = f"SELECT {identifier(catalog.name)}.system.iceberg_version()"
    ((version,),) = session.sql(query).collect()
    return str(version)


def lacking(settings: Settings, what: str) -> SetupError:
    """Return the error of a server without a requirement."""
    place = place_of(settings.spark_remote or "")
    return SetupError(f"The Spark server at {place} lacks {what}.", next_step=_NEXT_STEP)


def _jars(settings: Settings, folder: str | None) -> dict[str, str]:
    pinned = jars.pinned(settings)
    if folder:
        paths = (f"{folder.rstrip('/')}/{jar.file_name}" for jar in pinned)
        return {"spark.jars": ",".join(paths)}
    fetched = {"spark.jars.packages": ",".join(jar.coordinate for jar in pinned)}
    if settings.deployment == "aws":
        # Hundreds of unused megabytes.
        fetched["spark.jars.excludes"] = ",".join(IN_SPARK_OR_ICEBERG)
    return fetched
