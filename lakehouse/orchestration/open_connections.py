"""SQLite files that are opened for each statement, as Dagster does with its events, spared the
work of a last close.

SQLite writes its log into the database, and removes it, whenever the last connection is closed
(https://sqlite.org/wal.html, "Checkpointing"). One more connection that stays open leaves that
to the end.

Nor is the disk waited for at each commit: what a process wrote outlives it, and only where the
machine loses its power may the last of it be missing, and nothing be damaged
(https://sqlite.org/pragma.html#pragma_synchronous).
"""

import sqlite3
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

_MOST = 8
"""Files that are kept open at once: each run has one of its own beside those that all share."""


@contextmanager
def kept_open(folder: Path) -> Iterator[None]:
    """Keep what SQLAlchemy opens of the SQLite files below a folder open until the end of the
    block.
    """
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    kept = _Kept(folder)
    event.listen(Engine, "connect", kept.note)
    try:
        yield
    finally:
        event.remove(Engine, "connect", kept.note)
        kept.close()


class _Kept:
    def __init__(self, folder: Path) -> None:
        self._folder, self._lock = folder.resolve(), Lock()
        self._connections: OrderedDict[str, sqlite3.Connection] = OrderedDict()

    def note(self, opened: Any, _: Any) -> None:
        if not isinstance(opened, sqlite3.Connection):
            return
        path = opened.execute("PRAGMA database_list").fetchone()[2]
        if not path or not Path(path).resolve().is_relative_to(self._folder):
            return
        with self._lock:
            if path not in self._connections:
                # Before the file has a log there is nothing to spare.
                if opened.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                    return
                self._connections[path] = _reading(path)
                if len(self._connections) > _MOST:
                    self._connections.popitem(last=False)[1].close()
            self._connections.move_to_end(path)
        opened.execute("PRAGMA synchronous=NORMAL")

    def close(self) -> None:
        with self._lock:
            while self._connections:
                self._connections.popitem()[1].close()


def _reading(path: str) -> sqlite3.Connection:
    """Open a file, and read of it: a connection that never did does not count."""
    connection = sqlite3.connect(path, check_same_thread=False)
    connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    return connection
