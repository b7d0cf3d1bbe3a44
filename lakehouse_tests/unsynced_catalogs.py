"""Catalogs in SQLite of which no commit waits until the disk has it, for the processes of the tests.

By itself SQLite waits some three times for each, and a new catalog takes a dozen: half of the time
of a test that makes a table without Spark. It is for a machine that loses its power, which no test
does: what a process that is killed has written is the system's. The tests of whole commands and
processes wait as the product does.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from sqlalchemy import Engine, event

from lakehouse.iceberg.catalog import catalog

_FILE = "catalog.db"


@contextmanager
def do_not_wait() -> Iterator[None]:
    """Let neither Spark nor PyIceberg wait for the disk, for the time of a block."""
    with pytest.MonkeyPatch.context() as patch:
        options = f"{catalog._SQLITE_OPTIONS}&synchronous=OFF"
        patch.setattr(catalog, "_SQLITE_OPTIONS", options)
        event.listen(Engine, "connect", _do_not_wait)
        try:
            yield
        finally:
            event.remove(Engine, "connect", _do_not_wait)


def _do_not_wait(opened: Any, _: Any) -> None:
    if not isinstance(opened, sqlite3.Connection):
        return
    path = opened.execute("PRAGMA database_list").fetchone()[2]
    # Of a file that is no database the first statement of the product is to complain.
    if path.endswith(_FILE):
        with suppress(sqlite3.DatabaseError):
            opened.execute("PRAGMA synchronous = OFF")
