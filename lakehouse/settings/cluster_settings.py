"""Settings of distributed Spark: executors, network and Spark configuration."""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

from lakehouse.errors import SettingsError
from lakehouse.settings.setting_forms import (
    ARCHIVE,
    COUNT,
    HOST,
    MEMORY,
    Form,
    absolute_place,
    read_count,
    read_value,
)

When = Literal["auto", "always", "never"]
_WHEN = Form("auto|always|never", "auto, always or never")
STANDALONE = "spark://"
"""Prefix of the address of a standalone master."""
ARCHIVE_PYTHON = "bin/python"
"""Path of the `python` in an archive for executors."""
FORBIDDEN_CONFIGURATION = {
    "spark.master": "LAKEHOUSE_SPARK_MASTER sets it",
    "spark.remote": "SPARK_REMOTE sets it",
    "spark.driver.memory": "LAKEHOUSE_SPARK_MEMORY sets it",
    "spark.sql.ansi.enabled": "a value that cannot be cast must not silently become NULL",
    "spark.sql.catalogImplementation": "tables are in the catalog of Iceberg",
    "spark.sql.extensions": "those of Iceberg are needed",
    "spark.sql.session.timeZone": "times are in UTC",
}
"""Properties that LAKEHOUSE_SPARK_CONF cannot set, and why."""
SESSION_PREFIX = "spark.sql."
"""Prefix of properties that a session can set; other properties are set when Spark starts."""


@dataclass(frozen=True)
class ClusterSettings:
    """Settings of executors and driver; None means the default of the cluster."""

    configuration: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Spark properties that override those of the lakehouse. They may contain secrets."""
    driver_host: str | None = None
    """The name or address of the driver for executors."""
    executors: int | None = None
    executor_cores: int | None = None
    executor_memory: str | None = None
    executor_python: str | None = None
    """The Python of executors, as a path on them."""
    executor_archive: str | None = None
    """The Python archive for executors: a local path, or `s3://bucket/key`."""
    pyspark_python: str | None = None
    """PYSPARK_PYTHON."""
    python_path: str | None = None
    """PYTHONPATH."""
    spark_local_dirs: str | None = None
    """SPARK_LOCAL_DIRS, Spark's temporary folders."""
    executors_read: When = "auto"
    """When executors read delivered files; `auto` does if they are many or large."""
    wait_seconds: int = 120
    """How long to wait for the first executor."""

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> "ClusterSettings":
        """Read and validate the environment; raises SettingsError."""
        archive = read_value(env, "LAKEHOUSE_EXECUTOR_ARCHIVE", ARCHIVE)
        wait_seconds = read_value(env, "LAKEHOUSE_EXECUTOR_WAIT_SECONDS", COUNT)
        return cls(
            configuration=tuple(_configuration(env.get("LAKEHOUSE_SPARK_CONF") or "")),
            driver_host=read_value(env, "LAKEHOUSE_DRIVER_HOST", HOST),
            executors=read_count(env, "LAKEHOUSE_EXECUTORS"),
            executor_cores=read_count(env, "LAKEHOUSE_EXECUTOR_CORES"),
            executor_memory=read_value(env, "LAKEHOUSE_EXECUTOR_MEMORY", MEMORY),
            executor_python=env.get("LAKEHOUSE_EXECUTOR_PYTHON") or None,
            executor_archive=absolute_place(archive) if archive else None,
            pyspark_python=env.get("PYSPARK_PYTHON") or None,
            python_path=env.get("PYTHONPATH") or None,
            spark_local_dirs=env.get("SPARK_LOCAL_DIRS") or None,
            executors_read=cast(
                When, read_value(env, "LAKEHOUSE_EXECUTORS_READ", _WHEN) or "auto"
            ),
            wait_seconds=int(wait_seconds) if wait_seconds else cls.wait_seconds,
        )

    @property
    def of_sessions(self) -> dict[str, str]:
        """The properties that a session can set on any Spark."""
        return {
            name: value for name, value in self.configuration if name.startswith(SESSION_PREFIX)
        }

    def require_settable_by_client(self, besides: Mapping[str, object]) -> None:
        """Raise SettingsError for settings that only the process that starts Spark can apply."""
        of_start = {
            **besides,
            "LAKEHOUSE_DRIVER_HOST": self.driver_host,
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
                    " connect-conf` prints what else it needs."
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
            # The value can contain a secret.
            raise _no_configuration(f"has no name=value as entry {number} of {len(entries)}")
        if name in FORBIDDEN_CONFIGURATION:
            raise SettingsError(
                f"LAKEHOUSE_SPARK_CONF sets {name}, which is not to be set there:"
                f" {FORBIDDEN_CONFIGURATION[name]}.",
                next_step="Leave it out.",
            )
        yield name, value


def _no_configuration(problem: str) -> SettingsError:
    return SettingsError(
        f"LAKEHOUSE_SPARK_CONF {problem}; expected entries such as"
        " spark.executor.memoryOverhead=1g, with spaces between them.",
        next_step="Correct it; put a value with spaces in quotes.",
    )
