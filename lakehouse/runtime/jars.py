"""The jars that Spark is given: pinned, fetched once by Spark's own resolver, and never
resolved at a session's start.

They are shared by all clones of a user. A size is compared at each session's start, where it
costs nothing; the hash at set-up and by `doctor`.
"""

from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path

from lakehouse.errors import SetupError
from lakehouse.settings import Settings

NEXT_STEP = "Run `lakehouse setup`, which fetches it."


@dataclass(frozen=True)
class Jar:
    """One jar, pinned to what is in it."""

    coordinate: str
    """As Maven writes it: `group:artifact:version`."""
    sha256: str
    size_bytes: int

    @property
    def file_name(self) -> str:
        """Name of the file, as Spark's resolver gives it."""
        group, artifact, version = self.coordinate.split(":")
        return f"{group}_{artifact}-{version}.jar"


JARS = (
    Jar(
        "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
        sha256="3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82",
        size_bytes=48_309_426,
    ),
    Jar(
        "org.apache.iceberg:iceberg-aws-bundle:1.12.0",
        sha256="dd7e49ffa4ac9b215bed846581991259e3aec9bb2fa08d6cec029c46cd66d957",
        size_bytes=69_034_612,
    ),
    Jar(
        "org.xerial:sqlite-jdbc:3.54.1.0",
        sha256="f8dce420a6016278497f4f0560f65602b9db858de141b541cf91a4644ebe4639",
        size_bytes=12_132_578,
    ),
)


def jar_dir(settings: Settings) -> Path:
    """Folder of the jars."""
    return settings.cache_dir / "jars"


def path(settings: Settings, jar: Jar) -> Path:
    """Where a jar is, whether it is there or not."""
    return jar_dir(settings) / jar.file_name


def require(settings: Settings, jars: tuple[Jar, ...] = JARS) -> None:
    """Compare the jars' sizes, as far as a session's start can afford to look.

    :raises SetupError: when one is missing or damaged.
    """
    for jar in jars:
        if damage := size_problem(jar, path(settings, jar)):
            raise SetupError(damage, next_step=NEXT_STEP)


def size_problem(jar: Jar, file: Path) -> str:
    """Say what is wrong with a jar as far as its size tells; nothing where it is right."""
    if not file.is_file():
        return f"The jar {file} is missing."
    size_bytes = file.stat().st_size
    return (
        ""
        if size_bytes == jar.size_bytes
        else f"The jar {file} has {size_bytes} bytes; expected {jar.size_bytes}."
    )


def problem(jar: Jar, file: Path) -> str:
    """Say what is wrong with a jar, reading all of it; nothing where it is right."""
    if wrong_size := size_problem(jar, file):
        return wrong_size
    with file.open("rb") as content:
        digest = file_digest(content, "sha256").hexdigest()
    return (
        ""
        if digest == jar.sha256
        else f"The jar {file} has SHA-256 {digest}; expected {jar.sha256}."
    )
