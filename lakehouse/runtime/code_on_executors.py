"""Code of this process where executors of Spark run it as Python: this package, and functions of a
project.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakSet

from lakehouse.project_file import find_project_file
from lakehouse.runtime.code_files import (
    OWN_PACKAGE,
    code_files,
    imported_packages,
    process_code,
)
from lakehouse.runtime.package_zip import package_zip, zip_bytes, zip_name
from lakehouse.runtime.python_of_executors import send_archive
from lakehouse.runtime.temporary_folders import temporary_folder
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import replace_bytes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_sending = RLock()
_sent: "WeakKeyDictionary[SparkSession, set[str]]" = WeakKeyDictionary()
_have_project: "WeakSet[SparkSession]" = WeakSet()


def send_zip(session: "SparkSession", file: Path) -> None:
    """Let Python on executors import from a zip, which a session is sent once.

    Of a session that is no client of Spark Connect, the file has to stay as long as Spark lives.
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
        # PySpark imports from there too.
        sys.path[:] = [path for path in sys.path if Path(path).name != file.name]
        sent.add(file.name)


def read_project(settings: Settings) -> None:
    """Read the code of the project for a run that begins, which asks for Spark later: what is
    edited until then is none of the code that it runs.
    """
    if _is_imported(settings):
        process_code(settings)


def send_project(session: "SparkSession", settings: Settings) -> None:
    """Let Python on executors run the functions of the project, once it is imported here; it is
    sent once for each session.

    A function of the package of the assets is sent as code with what it refers to: the files
    there import Dagster, which executors need not have. What a function imports while it runs,
    and functions of other modules of the project, are imported there from a zip.
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
        _send_by_value(_assets_package(settings))
        _have_project.add(session)


def _is_imported(settings: Settings) -> bool:
    """Whether the project is imported in this process, and may have functions for executors."""
    root = settings.definitions.partition(".")[0]
    return root in sys.modules and _assets_package(settings) in sys.modules


@cache
def _assets_package(settings: Settings) -> str:
    """Return the package of the assets; nothing of the sample pipelines, whose functions run in
    Spark itself.
    """
    root = settings.definitions.partition(".")[0]
    if root == OWN_PACKAGE:
        return ""
    found = find_project_file(settings.project_root) if settings.project_root else None
    return found.assets if found and found.definitions == settings.definitions else root


def _send_by_value(package: str) -> None:
    from pyspark.cloudpickle import register_pickle_by_value

    # PySpark gives it no types.
    register_pickle_by_value(sys.modules[package])  # type: ignore[no-untyped-call]


@contextmanager
def _project_zip(settings: Settings) -> Iterator[Path]:
    """Write the project's modules, as they were when a run began, as a zip among what goes with
    this process's Spark.
    """
    from pyspark.sql.utils import is_remote

    # Packages too that were imported since the code was read.
    files = dict(code_files(imported_packages(settings), settings.project_root))
    for name, content in process_code(settings).items():
        if not name.startswith(f"{OWN_PACKAGE}/"):
            files[name] = content
    files = dict(sorted(files.items()))
    file = temporary_folder(settings) / zip_name("project", files)
    replace_bytes(file, zip_bytes(files))
    yield file
    # Executors of this process's own Spark fetch it from there, whenever one comes.
    if is_remote():
        file.unlink()
        with suppress(OSError):
            file.parent.rmdir()
