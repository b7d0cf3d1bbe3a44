"""A filled home that is put back to what it was, as often as something is erased from it."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from lakehouse.settings import Settings

_FOLDERS = ("warehouse", "archive", "inbox", "rejected", "privacy")
"""Their files are removed and replaced, and never written in place."""


class KeptHome:
    """A home beside a second one that holds what it had: tables know their files by their path,
    so that no copy could be used in its place.

    Files of tables and delivered files are linked, since nothing writes in them; databases are
    written back by SQLite, since Spark and Dagster have them open.
    """

    def __init__(self, settings: Settings) -> None:
        """Keep what a home has; nothing writes to it meanwhile."""
        self.settings = settings
        self._kept = settings.home.with_name(f"{settings.home.name}-kept")
        for folder in _FOLDERS:
            _link(settings.home / folder, self._kept / folder)
        for database in _databases(settings.home):
            _back_up(database, self._kept / database.relative_to(settings.home))

    def restore(self) -> None:
        """Give the home what it had, and wait until nothing is left to be written to disk."""
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
