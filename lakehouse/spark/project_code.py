"""Python code of this package and of a project, sent to executors and jobs."""

import io
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakSet
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from lakehouse.settings import Settings
from lakehouse.settings.project_file import find_project_file
from lakehouse.spark.executor_configuration import send_archive
from lakehouse.spark.spark_folders import temporary_folder
from lakehouse.storage.atomic_files import replace_bytes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


OWN_PACKAGE = __name__.partition(".")[0]
_OWN_FOLDER = Path(__file__).resolve().parents[1]
_EXCLUDED_FOLDERS = ("__pycache__", "site-packages", ".")
"""Prefixes of folders that contain no code of a project."""
_CODE_SUFFIXES = {".py", ".sql"}
_OWN_DATA_SUFFIXES = {".css", ".csv", ".html", ".md", ".properties", ".toml", ".typed", ".yaml"}
"""Data files of the lakehouse package."""


@cache
def process_code(settings: Settings) -> Mapping[str, bytes]:
    """Return the project's and the lakehouse's code by file name, as of the first call."""
    packages = imported_packages(settings, OWN_PACKAGE)
    return dict(sorted(code_files(packages, settings.project_root)))


def code_files(packages: Iterable[Path], root: Path | None) -> Iterator[tuple[str, bytes]]:
    """Yield code files, and the data files that the project at `root` declares."""
    patterns = _declared_data(root)
    for package in packages:
        paths = sorted(package.rglob("*")) if package.is_dir() else [package]
        data = set(_data_files(package, patterns)) if package.is_dir() else set()
        for file in paths:
            name = file.relative_to(package.parent)
            is_code = file.suffix in _CODE_SUFFIXES or file in data
            is_excluded = any(part.startswith(_EXCLUDED_FOLDERS) for part in name.parts)
            if is_code and not is_excluded and file.is_file():
                yield name.as_posix(), file.read_bytes()


def imported_packages(settings: Settings, *further: str) -> list[Path]:
    """Return the packages and modules of the project that this process imported."""
    definitions = settings.definitions.partition(".")[0]
    needed, folders = {definitions, *further}, _project_folders(settings, definitions)
    paths: dict[Path, None] = {}
    for name, module in sorted(sys.modules.items()):
        if "." in name:
            continue
        for path in _module_paths(module):
            if name in needed or path.parent in folders:
                paths[path] = None
    return list(paths)


def find_places(name: str) -> tuple[str, ...]:
    """Return the folders or the file of a top-level module, also if it is not imported yet."""
    if name in sys.modules:
        return _places(sys.modules[name])
    try:
        spec = find_spec(name)
    except ValueError:
        return ()
    if spec is None:
        return ()
    folders: Iterable[str] | None = spec.submodule_search_locations
    if folders is not None:
        return tuple(folders)
    return (spec.origin,) if spec.has_location and spec.origin else ()


def is_code_of(root: Path, folder: Path) -> bool:
    """Return whether a folder is in a project, not hidden and not in a virtual environment."""
    if not folder.is_relative_to(root):
        return False
    return not any(
        part.startswith(_EXCLUDED_FOLDERS) for part in folder.relative_to(root).parts
    )


def _project_folders(settings: Settings, package: str) -> set[Path]:
    """Return the project's root, and the folder of its package below it, such as `src`."""
    if settings.project_root is None:
        return set()
    root = settings.project_root.resolve()
    module = sys.modules.get(package)
    parents = {path.parent for path in _module_paths(module)} if module else set()
    return {root, *(folder for folder in parents if is_code_of(root, folder))}


def _module_paths(module: ModuleType) -> list[Path]:
    return [Path(place).resolve() for place in _places(module)]


def _places(module: ModuleType) -> tuple[str, ...]:
    """Return the folders of a package, which may lack an `__init__.py`, or a module's file."""
    folders = getattr(module, "__path__", None)
    if folders is not None:
        return tuple(folders)
    file = getattr(module, "__file__", None)
    return (file,) if file else ()


def _declared_data(root: Path | None) -> dict[str, list[str]]:
    """Return the project's `package-data` of setuptools."""
    file = root / "pyproject.toml" if root else None
    if file is None or not file.is_file():
        return {}
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    declared: dict[str, list[str]] = (
        content.get("tool", {}).get("setuptools", {}).get("package-data", {})
    )
    return declared


def _data_files(package: Path, patterns_of: Mapping[str, Sequence[str]]) -> Iterator[Path]:
    """Yield the declared data files of a package; never a home, a key or delivered files."""
    if package == _OWN_FOLDER:
        yield from (path for path in package.rglob("*") if path.suffix in _OWN_DATA_SUFFIXES)
        return
    for name, patterns in patterns_of.items():
        of_all = name in ("", "*")
        folder = package if of_all else package.parent.joinpath(*name.split("."))
        if folder.is_relative_to(package):
            for pattern in patterns:
                yield from folder.rglob(pattern) if of_all else folder.glob(pattern)


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
    root = Path(__file__).parents[1]
    modules = sorted(root.rglob("*.py"))
    files = {path.relative_to(root.parent).as_posix(): path.read_bytes() for path in modules}
    name = _zip_name(root.name, files)
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
