"""The folder of a project's assets, with its tests."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lakehouse.errors import UsageError
from lakehouse.scaffolding.python_text import formatted
from lakehouse.settings.project_file import find_project_file
from lakehouse.tables.quoting import shown

FIXTURES = "lakehouse.testing"


@dataclass(frozen=True)
class AssetsFolder:
    """The folder of the assets, a Python package such as `shop.assets`."""

    assets: Path
    package: str
    root: Path
    """The folder of the project, or the one in which the package is."""
    is_of_project: bool
    """Whether commands in that folder use these assets."""

    @property
    def tests(self) -> Path:
        own_tests = self.root / "lakehouse_tests" / "assets"
        return own_tests if own_tests.is_dir() else self.root / "tests"

    @property
    def has_fixtures(self) -> bool:
        """Whether a `conftest.py` gives the tests the fixtures of `lakehouse.testing`."""
        files = (self.root / "conftest.py", self.tests / "conftest.py")
        texts = [file.read_text(errors="replace") for file in files if file.is_file()]
        return self.tests.parent.name == "lakehouse_tests" or FIXTURES in "".join(texts)

    def table_path(self, table: str) -> Path:
        """Return the file of a table."""
        namespace, _, name = table.partition(".")
        return self.assets / namespace / f"{name}.py"

    def completed(self, texts: Mapping[Path, str]) -> dict[Path, str]:
        """Return files with formatted code, and an `__init__.py` for each folder of assets that
        has none.
        """
        own = self.package.split(".")[0]
        folders = {path.parent for path in texts if path.is_relative_to(self.assets)}
        missing = {
            folder / "__init__.py": f'"""Tables of the layer `{folder.name}`."""\n'
            for folder in sorted(folders)
            if not (folder / "__init__.py").exists()
        }
        return missing | {
            path: formatted(text, path, self.root, own) if path.suffix == ".py" else text
            for path, text in texts.items()
        }


def assets_folder_of(assets: Path, *, package: str | None = None) -> AssetsFolder:
    """Return a folder of assets with its project.

    :param package: the name by which the folder is imported; by default from the folders around.
    :raises UsageError: the folder does not exist, or is no package.
    """
    folder = assets.resolve()
    if not (folder / "__init__.py").is_file():
        problem = "has no __init__.py" if folder.is_dir() else "is no folder"
        raise UsageError(
            f"{shown(str(assets))} {problem}; expected the folder of the assets, a package.",
            next_step="Give it with --into.",
        )
    name = package or _package(folder)
    project = find_project_file(folder)
    own = f"{project.assets}." if project else "lakehouse."
    is_of_project = f"{name}.".startswith(own)
    root = project.root if project and is_of_project else folder.parents[name.count(".")]
    return AssetsFolder(folder, name, root, is_of_project)


def _package(folder: Path) -> str:
    parts = [folder.name]
    while (folder.parent / "__init__.py").is_file():
        folder = folder.parent
        parts.insert(0, folder.name)
    return ".".join(parts)
