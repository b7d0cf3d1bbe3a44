"""The settings of a Spark that is more than one process: what its executors are, how they reach the
driver, and any configuration of Spark's own.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

from lakehouse.errors import SettingsError
from lakehouse.setting_forms import (
    COUNT,
    HOST,
    MEMORY,
    archive_value,
    count_value,
    port_value,
    value_of_form,
)

_WEB_PAGE = (r"https?://[^\s/]+.*", "the address of a web page, such as http://host:8080")
When = Literal["auto", "always", "never"]
_WHEN = ("auto|always|never", "auto, always or never")
DRIVERS = 20
"""How many drivers of one machine find ports."""
DRIVER_PORTS = 3 * DRIVERS
"""For the driver, its blocks and its page, as many of each."""
ARCHIVE_PYTHON = "bin/python"
"""Path of the `python` in an archive for executors."""
REFUSED_CONFIGURATION = {
    "spark.master": "LAKEHOUSE_SPARK_MASTER sets it",
    "spark.remote": "SPARK_REMOTE sets it",
    "spark.driver.memory": "LAKEHOUSE_SPARK_MEMORY sets it",
    "spark.sql.ansi.enabled": "a value that cannot be cast must not become nothing in silence",
    "spark.sql.catalogImplementation": "tables are in the catalog of Iceberg",
    "spark.sql.extensions": "those of Iceberg are needed",
    "spark.sql.session.timeZone": "times are in UTC",
}
"""What LAKEHOUSE_SPARK_CONF may not set, and why."""
_NAMES_PYTHON = frozenset({"spark.pyspark.python", "spark.sql.execution.pyspark.python"})
"""Configuration of Spark that says which Python executors have."""
SESSION_PREFIX = "spark.sql."
"""How what a session may set begins; all else is set where Spark is started."""


@dataclass(frozen=True)
class ClusterSettings:
    """What somebody said of executors and driver; what is None follows from the cluster."""

    configuration: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Configuration of Spark, which goes before that of the lakehouse. It may hold secrets."""
    master_page: str | None = None
    """Where the web page of a standalone master is."""
    driver_host: str | None = None
    """By which name or address executors reach the driver."""
    driver_port: int | None = None
    """The first of 60 ports that a driver takes of the machine, for up to 20 of them at once."""
    executors: int | None = None
    executor_cores: int | None = None
    executor_memory: str | None = None
    executor_python: str | None = None
    """The Python that executors have; a path on them."""
    executor_archive: str | None = None
    """The archive that `lakehouse pack-python` made, whose Python executors have: a path here,
    or `s3://bucket/key`.
    """
    pyspark_python: str | None = None
    """What Spark itself was told of that."""
    pyspark_arguments: str | None = field(default=None, repr=False)
    """What PySpark itself was told to start Spark with."""
    spark_conf_dir: str | None = None
    """Where Spark itself was told that its `spark-defaults.conf` is."""
    python_path: str | None = None
    """Where Python itself was told that modules are."""
    spark_local_dirs: str | None = None
    """Where Spark itself was told to keep what it spills."""
    executors_read: When = "auto"
    """When executors read delivered files; by itself where they are many or large."""
    wait_seconds: int = 120
    """How long the first executor may take."""

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "ClusterSettings":
        """Read and check what the environment says.

        :raises SettingsError: names the variable, what it held and what was expected.
        """
        page = value_of_form(env, "LAKEHOUSE_SPARK_MASTER_PAGE", _WEB_PAGE, "")
        configuration = tuple(_configuration(env.get("LAKEHOUSE_SPARK_CONF") or ""))
        python = env.get("LAKEHOUSE_EXECUTOR_PYTHON") or None
        archive = archive_value(env, "LAKEHOUSE_EXECUTOR_ARCHIVE")
        if archive:
            _require_one_python(python, configuration)
        return cls(
            configuration=configuration,
            master_page=page.rstrip("/") or None,
            driver_host=value_of_form(env, "LAKEHOUSE_DRIVER_HOST", HOST, "") or None,
            driver_port=port_value(env, "LAKEHOUSE_DRIVER_PORT", DRIVER_PORTS),
            executors=count_value(env, "LAKEHOUSE_EXECUTORS"),
            executor_cores=count_value(env, "LAKEHOUSE_EXECUTOR_CORES"),
            executor_memory=value_of_form(env, "LAKEHOUSE_EXECUTOR_MEMORY", MEMORY, "") or None,
            executor_python=python,
            executor_archive=archive,
            pyspark_python=env.get("PYSPARK_PYTHON") or None,
            pyspark_arguments=env.get("PYSPARK_SUBMIT_ARGS") or None,
            spark_conf_dir=env.get("SPARK_CONF_DIR") or None,
            python_path=env.get("PYTHONPATH") or None,
            spark_local_dirs=env.get("SPARK_LOCAL_DIRS") or None,
            executors_read=cast(
                When,
                value_of_form(env, "LAKEHOUSE_EXECUTORS_READ", _WHEN, "auto"),
            ),
            wait_seconds=int(
                value_of_form(
                    env, "LAKEHOUSE_EXECUTOR_WAIT_SECONDS", COUNT, str(cls.wait_seconds)
                )
            ),
        )

    @property
    def of_sessions(self) -> dict[str, str]:
        """The configuration that a session may set, whoever started its Spark."""
        return {
            name: value for name, value in self.configuration if name.startswith(SESSION_PREFIX)
        }

    def require_settable_by_client(self, besides: Mapping[str, object]) -> None:
        """Make sure that nothing is said that only whoever starts Spark can set.

        :param besides: other settings of that kind; None where nothing is said.
        :raises SettingsError: names all of it.
        """
        of_start = {
            **besides,
            "LAKEHOUSE_DRIVER_HOST": self.driver_host,
            "LAKEHOUSE_DRIVER_PORT": self.driver_port,
            "LAKEHOUSE_EXECUTORS": self.executors,
            "LAKEHOUSE_EXECUTOR_CORES": self.executor_cores,
            "LAKEHOUSE_EXECUTOR_MEMORY": self.executor_memory,
        }
        named = [name for name, value in of_start.items() if value is not None]
        named += [name for name, _ in self.configuration if name not in self.of_sessions]
        if named:
            raise SettingsError(
                f"SPARK_REMOTE is set, and {', '.join(named)} too, which a client of Spark Connect"
                " cannot set.",
                next_step=(
                    "Unset them, and start the server with what they say; `lakehouse"
                    " connect-conf` prints what it needs besides."
                ),
            )


def _require_one_python(python: str | None, configuration: tuple[tuple[str, str], ...]) -> None:
    """Make sure that nothing but an archive names the Python of executors."""
    others = ["LAKEHOUSE_EXECUTOR_PYTHON"] if python else []
    others += [
        f"{name} of LAKEHOUSE_SPARK_CONF" for name, _ in configuration if name in _NAMES_PYTHON
    ]
    if others:
        raise SettingsError(
            f"LAKEHOUSE_EXECUTOR_ARCHIVE and {' and '.join(others)} are set, and name two Pythons"
            " of executors; expected one of them.",
            next_step=(
                "Unset LAKEHOUSE_EXECUTOR_ARCHIVE where executors have a Python with its"
                " packages, or else the other."
            ),
        )


def _configuration(text: str) -> Iterator[tuple[str, str]]:
    try:
        entries = shlex.split(text)
    except ValueError as error:
        raise _no_configuration(f"cannot be read ({error})") from error
    for number, entry in enumerate(entries, start=1):
        name, equals, value = entry.partition("=")
        if not equals or not re.fullmatch(r"spark\.[\w.-]+", name):
            # What was found may hold a secret.
            raise _no_configuration(f"has no name=value as entry {number} of {len(entries)}")
        if name in REFUSED_CONFIGURATION:
            raise SettingsError(
                f"LAKEHOUSE_SPARK_CONF sets {name}, which is not to be set there:"
                f" {REFUSED_CONFIGURATION[name]}.",
                next_step="Leave it out.",
            )
        yield name, value


def _no_configuration(problem: str) -> SettingsError:
    return SettingsError(
        f"LAKEHOUSE_SPARK_CONF {problem}; expected entries such as"
        " spark.executor.memoryOverhead=1g, with spaces between them.",
        next_step="Correct it; a value with spaces in it stands in quotes.",
    )
