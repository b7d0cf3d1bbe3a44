"""A filled home that can be restored to its original state after each erasure."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from lakehouse.settings import Settings

_FOLDERS = ("warehouse", "archive", "inbox", "rejected", "privacy")
"""Their files are replaced, and never modified in place."""


class KeptHome:
    """A home and its backup: table metadata contains file paths, so a copy would not work.

    Table files and delivered files are hard links, since they are never modified in place; databases
    are restored with SQLite's backup API, since Spark and Dagster have them open.
    """

    def __init__(self, settings: Settings) -> None:
        """Back up a home; nothing may write to it meanwhile."""
        self.settings = settings
        self._kept = settings.home.with_name(f"{settings.home.name}-kept")
        for folder in _FOLDERS:
            _link(settings.home / folder, self._kept / folder)
        for database in _databases(settings.home):
            _back_up(database, self._kept / database.relative_to(settings.home))

    def restore(self) -> None:
        """Restore the home, and wait until all writes are on disk."""
        home = self.settings.home
        for folder in _FOLDERS:
            shutil.rmtree(home / folder, ignore_errors=True)
            _link(self._kept / folder, home / folder)
        for database in _databases(self._kept):
            _back_up(database, home / database.relative_to(self._kept))
        os.sync()


def _link(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, copy_function=os.link)


def _databases(folder: Path) -> Iterator[Path]:
    yield from sorted(folder.rglob("*.db"))


def _back_up(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)
