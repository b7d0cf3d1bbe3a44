"""Finds the nearest parent `pyproject.toml` with a table `[tool.lakehouse]`."""

import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakehouse.errors import SettingsError

FILE = "pyproject.toml"
_TABLE = "[tool.lakehouse]"
MODULE_NAME = r"(?a:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*)"


@dataclass(frozen=True)
class ProjectFile:
    """The `[tool.lakehouse]` table; `root` is the folder of its `pyproject.toml`."""

    root: Path
    definitions: str
    """The module that contains the project, such as `shop.definitions`."""
    assets: str
    """The package of its assets, such as `shop.assets`."""

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self.root / FILE


def find_project_file(folder: Path) -> ProjectFile | None:
    """Return the project that contains a folder, or None; raises SettingsError."""
    for root in (folder, *folder.parents):
        file = root / FILE
        # Folders that this user cannot access are skipped.
        if os.access(file, os.R_OK) and file.is_file():
            text = file.read_text(encoding="utf-8", errors="replace")
            if _TABLE in text:
                return _project_file(file, text)
    return None


def _project_file(file: Path, text: str) -> ProjectFile:
    try:
        table = tomllib.loads(text).get("tool", {}).get("lakehouse", {})
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(
            f"{file} is no TOML: {error}; expected a table {_TABLE} in it.",
            next_step="Correct it.",
        ) from error
    return ProjectFile(
        file.parent, _module(file, table, "definitions"), _module(file, table, "assets")
    )


def _module(file: Path, table: dict[str, Any], key: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not re.fullmatch(MODULE_NAME, value):
        found = f"{key} is {value!r}" if key in table else f"{key} is not given"
        raise SettingsError(
            f"{file}: in {_TABLE}, {found}; expected the name of a module.",
            next_step=f'For example: {key} = "shop.{key}".',
        )
    return value
