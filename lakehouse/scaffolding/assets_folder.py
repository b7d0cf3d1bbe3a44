"""Where the files of declarations lie, and how long their lines may be."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lakehouse.errors import UsageError
from lakehouse.project_file import ProjectFile, find_project_file
from lakehouse.tables.escaping import shown

_USUAL_LINE_LENGTH = 88
_OWN_TESTS = ("lakehouse_tests", "assets")
FIXTURES = "lakehouse.testing"


@dataclass(frozen=True)
class AssetsFolder:
    """The folder of the assets, which is a Python package, and what belongs to it."""

    assets: Path
    package: str
    """The name by which the folder is imported, such as `shop.assets`."""
    root: Path
    """The folder of the project, or else that which the package is found from."""
    line_length: int
    is_of_project: bool
    """Whether these are the assets that commands in that folder find."""

    @property
    def tests(self) -> Path:
        """Where tests of assets lie."""
        return self.root.joinpath(*_OWN_TESTS) if self._has_own_tests else self.root / "tests"

    @property
    def has_fixtures(self) -> bool:
        """Whether the tests there have the fixtures of `lakehouse.testing` by themselves."""
        files = (self.root / "conftest.py", self.tests / "conftest.py")
        texts = (
            file.read_text(encoding="utf-8", errors="replace")
            for file in files
            if file.is_file()
        )
        return self._has_own_tests or any(FIXTURES in text for text in texts)

    @property
    def _has_own_tests(self) -> bool:
        """Whether this is a copy of the lakehouse itself."""
        return self.root.joinpath(*_OWN_TESTS, "conftest.py").is_file()

    def table_path(self, table: str) -> Path:
        """Return where a table's file lies."""
        namespace, _, name = table.partition(".")
        return self.assets / namespace / f"{name}.py"

    def with_packages(self, texts: Mapping[Path, str]) -> dict[Path, str]:
        """Return files together with an `__init__.py` for each folder of assets that has none:
        what is no package is not found.
        """
        folders = {path.parent for path in texts if path.is_relative_to(self.assets)}
        packages = {folder / "__init__.py": folder for folder in sorted(folders)}
        missing = {
            path: f'"""Tables of the layer `{folder.name}`."""\n'
            for path, folder in packages.items()
            if not path.exists()
        }
        return missing | dict(texts)


def assets_folder_of(assets: Path, *, package: str | None = None) -> AssetsFolder:
    """Return a folder of assets, with the project that it belongs to.

    :param package: the name by which the folder is imported; told by the folders around it
        where it is left out.
    :raises UsageError: the folder is not there, or is no package.
    """
    folder = assets.resolve()
    if not folder.is_dir():
        raise UsageError(
            f"{shown(str(assets))} is no folder; expected the one of the assets.",
            next_step="Give it with --into.",
        )
    if not (folder / "__init__.py").is_file():
        raise UsageError(
            f"{shown(str(assets))} has no __init__.py; expected a package, from which assets are"
            " imported.",
            next_step="Give the folder of the assets with --into.",
        )
    name = package or _package(folder)
    project = find_project_file(folder)
    is_of_project = _is_of(project, name) if project else name.startswith("lakehouse.")
    above = folder.parents[name.count(".")]
    root = project.root if project and is_of_project else above
    return AssetsFolder(folder, name, root, _line_length(root), is_of_project)


def _is_of(project: ProjectFile, package: str) -> bool:
    return f"{package}.".startswith(f"{project.assets}.")


def _package(folder: Path) -> str:
    parts = [folder.name]
    while (folder.parent / "__init__.py").is_file():
        folder = folder.parent
        parts.insert(0, folder.name)
    return ".".join(parts)


def _line_length(root: Path) -> int:
    """Return what the formatter of the project is told."""
    file = root / "pyproject.toml"
    if not file.is_file():
        return _USUAL_LINE_LENGTH
    settings = tomllib.loads(file.read_text(encoding="utf-8"))
    length = settings.get("tool", {}).get("ruff", {}).get("line-length", _USUAL_LINE_LENGTH)
    return length if isinstance(length, int) else _USUAL_LINE_LENGTH
