"""Downloads the pinned jars with Spark's own resolver.

A jar appears in the cache only after it is verified. Concurrent setups take turns.
"""

import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

from lakehouse.errors import SetupError
from lakehouse.settings import Settings
from lakehouse.spark import jars, jvm
from lakehouse.spark.jars import Jar
from lakehouse.storage.file_lock import file_lock

IN_SPARK_OR_ICEBERG = (
    "com.amazonaws:aws-java-sdk-bundle",
    "com.fasterxml.jackson.core:*",
    "com.fasterxml.jackson.dataformat:*",
    "commons-codec:*",
    "commons-logging:*",
    "joda-time:*",
    "org.apache.httpcomponents:*",
    "org.wildfly.openssl:*",
    "software.amazon.ion:*",
    "software.amazon.awssdk:annotations",
    "software.amazon.awssdk:arns",
    "software.amazon.awssdk:auth",
    "software.amazon.awssdk:aws-core",
    "software.amazon.awssdk:bundle",
    "software.amazon.awssdk:checksums",
    "software.amazon.awssdk:crt-core",
    "software.amazon.awssdk:http-auth",
    "software.amazon.awssdk:http-auth-aws",
    "software.amazon.awssdk:http-auth-spi",
    "software.amazon.awssdk:http-client-spi",
    "software.amazon.awssdk:identity-spi",
    "software.amazon.awssdk:json-utils",
    "software.amazon.awssdk:metrics-spi",
    "software.amazon.awssdk:profiles",
    "software.amazon.awssdk:protocol-core",
    "software.amazon.awssdk:regions",
    "software.amazon.awssdk:retries",
    "software.amazon.awssdk:retries-spi",
    "software.amazon.awssdk:s3",
    "software.amazon.awssdk:sdk-core",
    "software.amazon.awssdk:utils",
    "software.amazon.s3.analyticsaccelerator:*",
)
"""Dependencies of the S3 jars that are unused, or included in Spark or Iceberg's AWS bundle."""
_PREFIX = ".fetching-"
_LOCK_SECONDS = 3600.0


def fetch(
    settings: Settings, starts: Callable[[int], None], required: tuple[Jar, ...] | None = None
) -> list[Path]:
    """Download missing or damaged jars, and return the paths of all; raises SetupError.

    :param starts: called with the number of jars before a download.
    :param required: all pinned jars by default.
    """
    required = jars.pinned(settings) if required is None else required
    busy = SetupError(
        f"Jars are being fetched to {settings.cache_dir} by another process, which did not end"
        f" within {_LOCK_SECONDS:.0f} s.",
        next_step="Wait for it, or stop it, and run `lakehouse setup` again.",
    )
    with file_lock(settings.cache_dir / "jars.lock", _LOCK_SECONDS, busy):
        _clear_leftovers(settings.cache_dir)
        missing = [jar for jar in required if jars.problem(jar, jars.path(settings, jar))]
        if missing:
            starts(len(missing))
            with TemporaryDirectory(dir=settings.cache_dir, prefix=_PREFIX) as folder:
                _resolve(settings, missing, Path(folder))
                _move(settings, missing, Path(folder) / "jars")
    return [jars.path(settings, jar) for jar in required]


def _resolve(settings: Settings, required: Iterable[Jar], folder: Path) -> None:
    command, log = _command(settings, required, folder), folder / "log"
    with log.open("wb") as output:
        subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    missing = [
        jar.coordinate for jar in required if not (folder / "jars" / jar.file_name).is_file()
    ]
    if missing:
        kept = log.replace(settings.cache_dir / "resolver.log")
        raise SetupError(
            f"Spark's resolver could not fetch {', '.join(missing)}.",
            next_step=f"Read why in {kept}, check the network, and run `make setup` again.",
        )


def _command(settings: Settings, required: Iterable[Jar], folder: Path) -> list[str]:
    """Return the command of an empty Spark program that requires the jars."""
    import pyspark

    jvm.prepare(settings)
    program = folder / "nothing.py"
    program.touch()
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    packages = ",".join(jar.coordinate for jar in required)
    return [
        str(submit),
        "--conf",
        f"spark.jars.ivy={folder}",
        "--packages",
        packages,
        "--exclude-packages",
        ",".join(IN_SPARK_OR_ICEBERG),
        str(program),
    ]


def _move(settings: Settings, required: Iterable[Jar], folder: Path) -> None:
    jars.jar_dir(settings).mkdir(exist_ok=True)
    for jar in required:
        file = folder / jar.file_name
        if problem := jars.problem(jar, file):
            raise SetupError(
                f"{problem} It was fetched just now, and is not kept.",
                next_step=(
                    "A proxy or a mirror may have answered in its place; check it, and run"
                    " `make setup` again."
                ),
            )
        file.replace(jars.path(settings, jar))


def _clear_leftovers(cache_dir: Path) -> None:
    """Remove files of a killed setup; under the lock, no other one runs."""
    for folder in cache_dir.glob(f"{_PREFIX}*"):
        # The JVM of a killed setup can still write there; its files are removed the next time.
        rmtree(folder, ignore_errors=True)
