"""The files of a project's code, as its modules are imported in this process, for where it runs
elsewhere: in a job, and on executors.

They are read when a process begins its first run, and not again: one that is edited while that goes
on would be computed by under the version of the code before, which this process has loaded.
"""

import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from lakehouse.runtime.own_modules import NO_CODE, own_folders, paths_of
from lakehouse.settings import Settings

OWN_PACKAGE = __name__.partition(".")[0]
_OWN_FOLDER = Path(__file__).resolve().parents[1]
_CODE_SUFFIXES = {".py", ".sql"}
_OWN_DATA_SUFFIXES = {".css", ".csv", ".html", ".md", ".properties", ".toml", ".typed", ".yaml"}
"""Of what the lakehouse itself has beside its code."""


@cache
def process_code(settings: Settings) -> Mapping[str, bytes]:
    """Return the files of this process's code by name, the lakehouse's own among them, as they
    were when it was first asked for them.
    """
    packages = imported_packages(settings, OWN_PACKAGE)
    return dict(sorted(code_files(packages, settings.project_root)))


def code_files(packages: Iterable[Path], root: Path | None) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the code of packages and modules, and of their data that a
    project declares.

    :param root: the folder of the project's `pyproject.toml`.
    """
    declared = _declared_data(root)
    for path in packages:
        paths = sorted(path.rglob("*")) if path.is_dir() else [path]
        data = set(_data_files(path, paths, declared))
        for file in paths:
            name = file.relative_to(path.parent)
            is_code = file.suffix in _CODE_SUFFIXES or file in data
            is_left_out = any(part.startswith(NO_CODE) for part in name.parts)
            if is_code and not is_left_out and file.is_file():
                yield name.as_posix(), file.read_bytes()


def imported_packages(settings: Settings, *others: str) -> list[Path]:
    """Return the packages and modules that functions of a project need: that of the definitions,
    and what else was imported from where that lies or from the project's folder.

    :param others: names of packages that are needed besides.
    """
    definitions = settings.definitions.partition(".")[0]
    needed, folders = {definitions, *others}, own_folders(settings.project_root, definitions)
    paths: dict[Path, None] = {}
    for name, module in sorted(sys.modules.items()):
        if "." in name:
            continue
        for path in paths_of(module):
            if name in needed or path.parent in folders:
                paths[path] = None
    return list(paths)


def _declared_data(root: Path | None) -> dict[str, list[str]]:
    """Return what a project declares as data of its packages, as setuptools reads it."""
    file = root / "pyproject.toml" if root else None
    if file is None or not file.is_file():
        return {}
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    declared: dict[str, list[str]] = (
        content.get("tool", {}).get("setuptools", {}).get("package-data", {})
    )
    return declared


def _data_files(
    package: Path, paths: Sequence[Path], declared: Mapping[str, Sequence[str]]
) -> Iterator[Path]:
    """Return the files of a package that are data of it: of a project those that it declares,
    so that a home, a key or delivered files that lie there are none.

    :param paths: all that lies in the package.
    """
    if not package.is_dir():
        return
    if package == _OWN_FOLDER:
        yield from (path for path in paths if path.suffix in _OWN_DATA_SUFFIXES)
        return
    folders = [package, *(path for path in paths if path.is_dir())]
    for name, patterns in declared.items():
        for folder in folders:
            dotted = ".".join(folder.relative_to(package.parent).parts)
            if name in ("", "*", dotted):
                for pattern in patterns:
                    yield from folder.glob(pattern)
