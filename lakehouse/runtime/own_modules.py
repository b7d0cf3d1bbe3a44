"""Which modules are a project's own, and not of what it has installed."""

import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

NO_CODE = ("__pycache__", "site-packages", ".")
"""How folders begin in which no code of a project lies."""


def own_folders(root: Path | None, package: str) -> frozenset[Path]:
    """Return the folders whose modules are a project's own: its root, and below that where one of
    its packages lies, such as `src`; none of an environment, which may lie there too.

    :param root: the folder of the project's `pyproject.toml`.
    :param package: the name of the package.
    """
    if root is None:
        return frozenset()
    own = root.resolve()
    module = sys.modules.get(package)
    beside = {path.parent for path in paths_of(module)} if module else set()
    return frozenset({own, *(folder for folder in beside if is_code_of(own, folder))})


def paths_of(module: ModuleType) -> list[Path]:
    """Return the folders of a package, which has no file where it lacks an `__init__.py`; or the
    file of a module.
    """
    return [Path(place).resolve() for place in places_of(module)]


def places_of(module: ModuleType) -> tuple[str, ...]:
    """Return the same as Python itself has it, which costs nothing."""
    folders = getattr(module, "__path__", None)
    if folders is not None:
        return tuple(folders)
    file = getattr(module, "__file__", None)
    return (file,) if file else ()


def find_places(name: str) -> tuple[str, ...]:
    """Return the folders or the file of a module at the top, which need not have been imported
    yet.
    """
    if name in sys.modules:
        return places_of(sys.modules[name])
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
    """Whether a folder of a project is not part of an environment and not hidden."""
    if not folder.is_relative_to(root):
        return False
    return not any(part.startswith(NO_CODE) for part in folder.relative_to(root).parts)
