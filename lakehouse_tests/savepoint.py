"""A home that is filled once, and brought back for each test to what it was then."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path

while_filling: Callable[[], AbstractContextManager[None]] = nullcontext
"""Wraps the filling of a shared home; `costs.py` sets it, to charge no single test for it."""

_CATALOG = "catalog.db"
_KEPT = {_CATALOG, f"{_CATALOG}-shm", f"{_CATALOG}-wal", "locks", "spark", "tmp", "warehouse"}


class Savepoint:
    """What a home holds at a moment, to come back to: where each table stands, and all that
    changes in place.

    Data files stay: none is ever changed.
    """

    def __init__(self, home: Path, copy: Path) -> None:
        """Keep a copy in a folder that is not there yet."""
        self._home, self._copy = home, copy
        copy.mkdir()
        _copy_database(home / _CATALOG, copy / _CATALOG)
        _copy_changing(home, copy)

    def restore(self) -> None:
        """Bring the home back."""
        _copy_database(self._copy / _CATALOG, self._home / _CATALOG)
        for path in _changing(self._home):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        _copy_changing(self._copy, self._home)


class FilledOnce:
    """A home for the tests of a file, which the first of them fills."""

    def __init__(self, folder: Path) -> None:
        """Take a folder that is empty."""
        self._folder, self.home = folder, folder / "home"
        self._saved: Savepoint | None = None

    def bring_back(self, fill: Callable[[], None]) -> None:
        """Let the home hold what it did when it had been filled; Spark knows nothing of what
        the test before told it.
        """
        from lakehouse.spark import spark_session

        if self._saved is None:
            with while_filling():
                fill()
            self._saved = Savepoint(self.home, self._folder / "saved")
        else:
            self._saved.restore()
        for key in [key for key in spark_session._sessions if str(self.home) in key[1]]:
            del spark_session._sessions[key]


def _changing(home: Path) -> list[Path]:
    return [path for path in home.iterdir() if path.name not in _KEPT]


def _copy_changing(source: Path, target: Path) -> None:
    for path in _changing(source):
        copy = shutil.copytree if path.is_dir() else shutil.copy2
        copy(path, target / path.name)


def _copy_database(source: Path, target: Path) -> None:
    # By SQLite itself, since sessions hold the file open.
    with closing(sqlite3.connect(source)) as given, closing(sqlite3.connect(target)) as taken:
        given.backup(taken)
