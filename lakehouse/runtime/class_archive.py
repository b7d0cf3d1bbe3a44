"""Java's classes, read once: an archive of what each start of Spark loads, which `lakehouse
setup` makes.

A JVM maps the archive into its memory instead of reading, checking and laying out the same
classes anew (JEP 310 and JEP 350). It is for speed alone: a JVM of another build, or with other
jars, starts as if there were none.
"""

import json
import shlex
import subprocess
import sys
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from filelock import FileLock

from lakehouse.errors import SetupError
from lakehouse.runtime import jars
from lakehouse.runtime.jvm import Jvm
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import replace_text

_PREFIX = ".classes-"
_QUIET = ("-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""One that does not fit is passed over, and nobody is told at each start: `doctor` says whether
it is used.
"""
_LIMIT_SECONDS = 600
_SHORT_LIVED = "-XX:TieredStopAtLevel=1"


def archive_path(settings: Settings, chosen: Jvm) -> Path:
    """Return where the archive for a JVM and these jars is; it need not be there."""
    release = chosen.home / "release"
    told = release.read_text(encoding="utf-8", errors="replace") if release.is_file() else ""
    parts = [
        str(chosen.home),
        told,
        str(_spark_home()),
        *(str(jars.path(settings, jar)) for jar in jars.JARS),
    ]
    key = sha256("\n".join(parts).encode()).hexdigest()[:16]
    return settings.cache_dir / "classes" / f"{key}.jsa"


def archive_options(settings: Settings, chosen: Jvm) -> list[str]:
    """Return the options by which a JVM uses its archive; none where there is none."""
    file = archive_path(settings, chosen)
    return [_use(file), *_QUIET] if file.is_file() else []


def archive_problem(settings: Settings, chosen: Jvm) -> str:
    """Say why a JVM would not use its archive; nothing where it would. Starts that JVM, for a
    tenth of a second.
    """
    file = archive_path(settings, chosen)
    if not file.is_file():
        return "none was made"
    return _problem(chosen, file, _noted(file).get("class_path", ""))


def make_archive(settings: Settings, chosen: Jvm) -> str:
    """Make the archive of a JVM, unless it is there and fits; takes half a minute.

    :returns: why there is none; nothing where there is one.
    """
    file = archive_path(settings, chosen)
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(file.parent / "lock"):
        drop_those_of_others(file.parent)
        if not archive_problem(settings, chosen):
            return ""
        with TemporaryDirectory(dir=file.parent, prefix=_PREFIX) as folder:
            try:
                return _make(chosen, file, Path(folder))
            except (OSError, subprocess.SubprocessError, SetupError) as error:
                return f"{type(error).__name__}: {error}"


def _make(chosen: Jvm, file: Path, folder: Path) -> str:
    made = folder / file.name
    if not any((chosen.home / "lib").glob("*/classes.jsa")):
        return f"Java from {chosen.source} has none of its own classes, which another builds on"
    recording = [_SHORT_LIVED, f"-XX:ArchiveClassesAtExit={made}"]
    training = [
        sys.executable,
        "-m",
        "lakehouse.runtime.class_training",
        str(folder / "home"),
        *recording,
    ]
    class_path = _run(training).strip().rpartition("\n")[2]
    if not made.is_file():
        return "the JVM made none at its end"
    if problem := _problem(chosen, made, class_path):
        return problem
    note = {"java": str(chosen.home), "spark": str(_spark_home()), "class_path": class_path}
    replace_text(file.with_suffix(".json"), json.dumps(note))
    made.replace(file)
    return ""


def _run(command: list[str]) -> str:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_LIMIT_SECONDS,
        check=False,
    )
    if done.returncode:
        raise SetupError(
            f"{shlex.join(command[:3])} ended with {done.returncode}:"
            f" {done.stderr.strip()[-300:]}"
        )
    return done.stdout


def _problem(chosen: Jvm, file: Path, class_path: str) -> str:
    options = [_use(file), "-Xshare:on", "-cp", class_path]
    asked = subprocess.run(
        [str(chosen.java), *options, "-version"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return (
        ""
        if asked.returncode == 0
        else (asked.stdout + asked.stderr).strip().partition("\n")[0]
    )


def _use(file: Path) -> str:
    return f"-XX:SharedArchiveFile={file}"


def _noted(file: Path) -> dict[str, str]:
    try:
        noted: dict[str, str] = json.loads(
            file.with_suffix(".json").read_text(encoding="utf-8")
        )
        return noted
    except (OSError, ValueError):
        return {}


def drop_those_of_others(folder: Path) -> None:
    """Drop archives whose Java or Spark is no more, such as that of a clone that was
    removed.
    """
    for note in folder.glob("*.json"):
        noted = _noted(note.with_suffix(".jsa"))
        if not all(Path(noted.get(name, "")).is_dir() for name in ("java", "spark")):
            for kept in folder.glob(f"{note.stem}.*"):
                kept.unlink(missing_ok=True)


def _spark_home() -> Path:
    found = find_spec("pyspark")
    assert found is not None and found.origin is not None
    return Path(found.origin).parent
