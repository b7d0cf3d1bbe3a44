"""The files of a project's code, for jobs and executors.

They are read once, at the first run of a process, like the code that it has imported.
"""

import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from lakehouse.settings import Settings

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
        data = set(_data_files(package, paths, patterns))
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


def _data_files(
    package: Path, paths: Sequence[Path], patterns_of: Mapping[str, Sequence[str]]
) -> Iterator[Path]:
    """Yield the declared data files of a package; never a home, a key or delivered files."""
    if not package.is_dir():
        return
    if package == _OWN_FOLDER:
        yield from (path for path in paths if path.suffix in _OWN_DATA_SUFFIXES)
        return
    folders = [package, *(path for path in paths if path.is_dir())]
    for name, patterns in patterns_of.items():
        for folder in folders:
            dotted = ".".join(folder.relative_to(package.parent).parts)
            if name in ("", "*", dotted):
                for pattern in patterns:
                    yield from folder.glob(pattern)
