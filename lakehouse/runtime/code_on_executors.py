"""Sends Python code to Spark executors: this package, and the functions of a project."""

import io
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakSet
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import lakehouse
from lakehouse.project_file import find_project_file
from lakehouse.runtime.project_code import (
    OWN_PACKAGE,
    code_files,
    imported_packages,
    process_code,
)
from lakehouse.runtime.python_of_executors import send_archive
from lakehouse.runtime.temporary_folders import temporary_folder
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import replace_bytes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DIGITS = 16
_ZIP_NAME = re.compile(rf"[a-z]+-[0-9a-f]{{{_DIGITS}}}\.zip")
_ENTRY_TIME = (1980, 1, 1, 0, 0, 0)
_ENTRY_MODE = 0o644 << 16
_sending = RLock()
_sent: "WeakKeyDictionary[SparkSession, set[str]]" = WeakKeyDictionary()
_have_project: "WeakSet[SparkSession]" = WeakSet()


def send_zip(session: "SparkSession", file: Path) -> None:
    """Let Python on executors import from a zip. Each session is sent a zip once.

    Without Spark Connect, the file must exist as long as Spark runs.
    """
    from pyspark.sql.utils import is_remote

    with _sending:
        sent = _sent.setdefault(session, set())
        if file.name in sent:
            return
        if is_remote():
            session.addArtifacts(str(file), pyfile=True)
        else:
            session.sparkContext.addPyFile(str(file))
        # PySpark also adds it to the path of this process.
        sys.path[:] = [path for path in sys.path if Path(path).name != file.name]
        sent.add(file.name)


def read_project(settings: Settings) -> None:
    """Read the project's code at the start of a run, so that later edits are not part of it."""
    if _is_imported(settings):
        process_code(settings)


def send_project(session: "SparkSession", settings: Settings) -> None:
    """Send the project's functions once per session; other modules are imported from a zip.

    Functions of assets are pickled by value: their modules import Dagster, which executors lack.
    """
    if session in _have_project or not _is_imported(settings):
        return
    with _sending:
        if session in _have_project:
            return
        send_archive(session, settings)
        send_zip(session, package_zip(settings))
        with _project_zip(settings) as file:
            send_zip(session, file)
        _pickle_by_value(_assets_package(settings))
        _have_project.add(session)


def package_zip(settings: Settings) -> Path:
    """Return a zip of this package, in the cache or in this process's temporary folder."""
    root = Path(lakehouse.__file__).parent
    modules = sorted(root.rglob("*.py"))
    files = {path.relative_to(root.parent).as_posix(): path.read_bytes() for path in modules}
    name = _zip_name(lakehouse.__name__, files)
    cached = settings.cache_dir / "packages" / name
    if cached.is_file():
        return cached
    content = zip_bytes(files)
    try:
        replace_bytes(cached, content)
    except OSError:
        cached = temporary_folder(settings) / name
        replace_bytes(cached, content)
    return cached


def is_code_zip(name: str) -> bool:
    """Return whether a file name is that of a zip of code."""
    return _ZIP_NAME.fullmatch(name) is not None


def content_digest(files: Mapping[str, bytes]) -> str:
    """Return a hash of the names and contents of files, in hex digits."""
    digest = sha256()
    for name, content in files.items():
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:_DIGITS]


def zip_bytes(files: Mapping[str, bytes]) -> bytes:
    """Return a zip of files by name; equal files give equal bytes."""
    content = io.BytesIO()
    with ZipFile(content, "w", ZIP_DEFLATED) as archive:
        for name, file in files.items():
            entry = ZipInfo(name, _ENTRY_TIME)
            entry.external_attr = _ENTRY_MODE
            archive.writestr(entry, file, ZIP_DEFLATED)
    return content.getvalue()


def _zip_name(prefix: str, files: Mapping[str, bytes]) -> str:
    return f"{prefix}-{content_digest(files)}.zip"


def _is_imported(settings: Settings) -> bool:
    """Return whether this process has imported the project, so executors may need its functions."""
    root = settings.definitions.partition(".")[0]
    return root in sys.modules and _assets_package(settings) in sys.modules


@cache
def _assets_package(settings: Settings) -> str:
    """Return the package of the assets; empty for the sample pipelines, which run in Spark only."""
    root = settings.definitions.partition(".")[0]
    if root == OWN_PACKAGE:
        return ""
    project = find_project_file(settings.project_root) if settings.project_root else None
    return project.assets if project and project.definitions == settings.definitions else root


def _pickle_by_value(package: str) -> None:
    from pyspark.cloudpickle import register_pickle_by_value

    # PySpark has no types for it.
    register_pickle_by_value(sys.modules[package])  # type: ignore[no-untyped-call]


@contextmanager
def _project_zip(settings: Settings) -> Iterator[Path]:
    """Write the project's modules as a zip; modules of the first run as they were then."""
    from pyspark.sql.utils import is_remote

    files = dict(code_files(imported_packages(settings), settings.project_root))
    for name, content in process_code(settings).items():
        if not name.startswith(f"{OWN_PACKAGE}/"):
            files[name] = content
    files = dict(sorted(files.items()))
    file = temporary_folder(settings) / _zip_name("project", files)
    replace_bytes(file, zip_bytes(files))
    yield file
    # Executors of this process's own Spark fetch the file later.
    if is_remote():
        file.unlink()
        with suppress(OSError):
            file.parent.rmdir()
