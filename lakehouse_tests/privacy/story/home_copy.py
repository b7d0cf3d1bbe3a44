"""A copy of a whole home, to come back to under the same path: tables know their files by it."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

_CATALOG = "catalog.db"


class HomeCopy:
    """What a home held at a moment."""

    def __init__(self, home: Path) -> None:
        """Copy a home to a folder beside it, which is not there yet."""
        self._home, self._copy = home, home.with_name("first")
        ignored = shutil.ignore_patterns(f"{_CATALOG}*")
        shutil.copytree(home, self._copy, ignore=ignored, symlinks=True)
        _copy_database(home / _CATALOG, self._copy / _CATALOG)

    def restore(self) -> None:
        """Bring the home back; what came since goes."""
        for path in self._home.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif not path.name.startswith(_CATALOG):
                path.unlink()
        ignored = shutil.ignore_patterns(_CATALOG)
        shutil.copytree(
            self._copy, self._home, ignore=ignored, symlinks=True, dirs_exist_ok=True
        )
        _copy_database(self._copy / _CATALOG, self._home / _CATALOG)


def _copy_database(source: Path, target: Path) -> None:
    # By SQLite itself, since sessions hold the file open.
    with closing(sqlite3.connect(source)) as given, closing(sqlite3.connect(target)) as taken:
        given.backup(taken)
