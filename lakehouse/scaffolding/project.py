"""Where the files of declarations lie, and how long their lines may be."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lakehouse.errors import UsageError
from lakehouse.tables.escaping import shown

_USUAL_LINE_LENGTH = 88
_OWN_TESTS = ("lakehouse_tests", "assets")


@dataclass(frozen=True)
class Project:
    """The folder of the assets, which is a Python package, and what belongs to it."""

    assets: Path
    package: str
    """The name by which the folder is imported, such as `lakehouse.assets`."""
    root: Path
    """The folder that the package is found from."""
    line_length: int

    @property
    def tests(self) -> Path:
        """Where tests of assets lie."""
        return self.root.joinpath(*_OWN_TESTS) if self.has_fixtures else self.root / "tests"

    @property
    def has_fixtures(self) -> bool:
        """Whether the tests are those of a copy of the lakehouse itself, which have a session."""
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


def project_of(assets: Path, *, package: str | None = None) -> Project:
    """Return the project that a folder of assets belongs to.

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
    root = folder.parents[name.count(".")]
    return Project(folder, name, root, _line_length(root))


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
