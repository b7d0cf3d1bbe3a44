"""Which project a folder belongs to: the nearest `pyproject.toml` upwards that has a table
`[tool.lakehouse]`.
"""

import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakehouse.errors import SettingsError

FILE = "pyproject.toml"
_TABLE = "[tool.lakehouse]"
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)


@dataclass(frozen=True)
class ProjectFile:
    """What a project says of itself; `root` is the folder of its `pyproject.toml`."""

    root: Path
    definitions: str
    """The module that has the project, such as `shop.definitions`."""
    assets: str
    """The package of its assets, such as `shop.assets`."""

    @property
    def path(self) -> Path:
        """The file that says so."""
        return self.root / FILE


def find_project_file(folder: Path) -> ProjectFile | None:
    """Return the project that a folder lies in; None where it lies in none.

    :raises SettingsError: the file is no TOML, or names no module.
    """
    for root in (folder, *folder.parents):
        file = root / FILE
        # Of folders that this user cannot look into, none is said to be the project's.
        if os.access(file, os.R_OK) and file.is_file():
            text = file.read_text(encoding="utf-8", errors="replace")
            if _TABLE in text:
                return _project_file(file, text)
    return None


def is_module_name(text: str) -> bool:
    """Whether a text is the name of a module, such as `shop.definitions`."""
    return _MODULE.fullmatch(text) is not None


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
    if not isinstance(value, str) or not is_module_name(value):
        found = f"{key} is {value!r}" if key in table else f"{key} is not given"
        raise SettingsError(
            f"{file}: in {_TABLE}, {found}; expected the name of a module.",
            next_step=f'Say such as {key} = "shop.{key}".',
        )
    return value
