"""The code that a process has loaded, and whether it is still what stands in its files."""

import os
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

_INSTALLED = ("stdlib", "platstdlib", "purelib", "platlib")
_CACHE = "__pycache__"


@dataclass(frozen=True)
class LoadedCode:
    """The files that the modules of this process came from, and all others in their packages,
    such as queries; what is installed in the environment by its modules alone.

    :param stamps: of each file the time of its last change, in nanoseconds, and its size.
    """

    stamps: Mapping[str, tuple[int, int]]
    was_steady: bool
    day: date = field(default_factory=date.today)
    """When it was loaded: what is computed at import, such as today, is of that day."""

    @classmethod
    def since(cls, began_at: float) -> "LoadedCode":
        """Note what stands in the files now.

        :param began_at: when the first of them may have been read, in seconds since 1970; one
            that changed later may have been read before.
        """
        stamps = _stamps()
        began, now = int(began_at * 1e9), time.time_ns()
        changed = [path for path, (time_ns, _) in stamps.items() if began <= time_ns <= now]
        return cls(stamps, not changed)

    @property
    def is_current(self) -> bool:
        """Whether each file is as it was when it was loaded, none came or went, and it is still
        the same day.
        """
        return self.was_steady and self.day == date.today() and _stamps() == self.stamps


def _stamps() -> dict[str, tuple[int, int]]:
    files = _files_of_modules()
    for folder in _packages():
        files |= set(_files_below(folder))
    stamps = {}
    for path in files:
        try:
            found = Path(path).stat()
        except OSError:
            continue
        stamps[path] = found.st_mtime_ns, found.st_size
    return stamps


def _files_of_modules() -> set[str]:
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return {file for file in files if file}


def _packages() -> set[str]:
    """Return the folders of the packages that are no part of what is installed."""
    paths = sysconfig.get_paths()
    installed = tuple(f"{Path(paths[name])}{os.sep}" for name in _INSTALLED)
    folders = set()
    for name, module in list(sys.modules.items()):
        if "." not in name:
            folders |= {str(Path(folder)) for folder in getattr(module, "__path__", ())}
    return {folder for folder in folders if not f"{folder}{os.sep}".startswith(installed)}


def _files_below(folder: str) -> Iterator[str]:
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != _CACHE and not name.startswith(".")]
        yield from (f"{parent}{os.sep}{name}" for name in files)
