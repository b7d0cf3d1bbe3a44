"""Dagster's SQLite files, opened in fewer ways than Dagster does; with `dagster_internals` the
only module that reaches into Dagster.

It is there to save more than a tenth of a late file. On 2026-11-25, in eight pairs of runs on a
machine that did nothing else, a late file took 0.85 of the time that it took with Dagster's own,
and 0.91 of the processor's (`benchmarks/results/event_log.md`).

The event log keeps a file's engine from one event to the next. Dagster's own makes an engine for
each connection, and with it loses what SQLAlchemy keeps in one: the statements that it compiled,
and the connection. It makes the tables of each run's file one by one, and notes their revision by
Alembic; here the second file is a copy of the first as it was then. And it asks for each check
whether there is a table for it, and which materialization it speaks of; here the checks of one
are answered at once.

Files that are opened for each statement all the same are spared the work of a last close: SQLite
writes its log into the database, and removes it, whenever the last connection is closed
(https://sqlite.org/wal.html, "Checkpointing"). One more connection that stays open leaves that to
the end. Nor is the disk waited for at each commit: what a process wrote outlives it, and only
where the machine loses its power may the last of it be missing, and nothing be damaged
(https://sqlite.org/pragma.html#pragma_synchronous).
"""

import sqlite3
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cache
from pathlib import Path
from threading import Lock, RLock
from typing import Any, ClassVar

from alembic.script import ScriptDirectory
from dagster import (
    AssetKey,
    AssetRecordsFilter,
    DagsterEventType,
    EventLogEntry,
    EventRecordsResult,
)
from dagster._core.storage import sql
from dagster._core.storage.event_log.sqlite.sqlite_event_log import (
    INDEX_SHARD_NAME,
    SqliteEventLogStorage,
)
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from dagster._core.storage.schedules.sqlite import sqlite_schedule_storage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from sqlalchemy import Connection, Engine, create_engine, event

from lakehouse.storage.atomic_files import create_bytes

_MOST_ENGINES = 4
"""Engines that are kept: a command is at one run at a time."""
_MOST_FILES = 8
"""Files that are kept open at once: each run has one of its own beside those that all share."""
_REMEMBERED_SECONDS = 1.0
_OF_CHECKS = (DagsterEventType.ASSET_CHECK_EVALUATION, DagsterEventType.STEP_OUTPUT)
"""Events that a check leaves: what it found, and that its step has handed it on."""


class EventLog(SqliteEventLogStorage):
    """An event log in the same files and of the same tables, so that others read and write it
    beside this one.
    """

    _empty: ClassVar[list[tuple[bytes, int]]] = []
    """The file of a run that has no events yet, and its mode, once there is one: those of all
    instances are alike.
    """

    def __init__(self, base_dir: str, inst_data: Any = None) -> None:
        self._engines: OrderedDict[str, Engine] = OrderedDict()
        self._using = RLock()
        self._answered: tuple[float, tuple[Any, ...], EventRecordsResult] | None = None
        self._has_checks = False
        super().__init__(base_dir, inst_data)

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Mapping[str, Any]) -> "EventLog":
        """Make it of its `base_dir`, as an instance does."""
        return cls(inst_data=inst_data, **config_value)

    def run_connection(self, run_id: str | None = None) -> AbstractContextManager[Connection]:
        """Connect to the events of a run."""
        return self._connected(run_id) if run_id else super().run_connection(run_id)

    def index_connection(self) -> AbstractContextManager[Connection]:
        """Connect to what is kept of all runs."""
        return self._connected(INDEX_SHARD_NAME)

    @property
    def supports_asset_checks(self) -> bool:
        """Whether there is a table for checks; Dagster asks for each event of one, and a table
        that is there stays.
        """
        self._has_checks = self._has_checks or super().supports_asset_checks
        return self._has_checks

    def store_event(self, event: EventLogEntry) -> None:
        """Store an event; after any but those of a check, a materialization may be newer than
        the one that was asked for last.
        """
        if event.dagster_event_type not in _OF_CHECKS:
            self._answered = None
        super().store_event(event)

    def fetch_materializations(
        self,
        records_filter: AssetKey | AssetRecordsFilter,
        limit: int,
        cursor: str | None = None,
        ascending: bool = False,
    ) -> EventRecordsResult:
        """Return materializations; for the checks of one in a row, those that were read for the
        first of them.
        """
        asked, now = (records_filter, limit, cursor, ascending), time.monotonic()
        if (
            self._answered
            and self._answered[1] == asked
            and now - self._answered[0] < _REMEMBERED_SECONDS
        ):
            return self._answered[2]
        records = super().fetch_materializations(records_filter, limit, cursor, ascending)
        self._answered = (now, asked, records)
        return records

    def wipe(self) -> None:
        """Delete all events, with their files."""
        self._forget(*self._engines)
        super().wipe()

    def dispose(self) -> None:
        """Close the files."""
        self._forget(*self._engines)
        super().dispose()

    @contextmanager
    def _connected(self, file: str) -> Iterator[Connection]:
        with self._using, self._engine_of(file).begin() as connection:
            yield connection

    def _engine_of(self, file: str) -> Engine:
        if file in self._engines:
            self._engines.move_to_end(file)
            return self._engines[file]
        self._make_tables(file)
        engine = create_engine(
            self.conn_string_for_shard(file),
            connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS},
        )
        self._engines[file] = engine
        if len(self._engines) > _MOST_ENGINES:
            self._forget(next(name for name in self._engines if name != INDEX_SHARD_NAME))
        return engine

    def _make_tables(self, file: str) -> None:
        path = Path(self.path_for_shard(file))
        is_new = not path.exists()
        for empty, mode in self._empty:
            if is_new and create_bytes(path, empty, mode=mode):
                return
        with super().run_connection(file):
            pass
        if is_new and file != INDEX_SHARD_NAME:
            with closing(sqlite3.connect(path)) as connection:
                if connection.execute("SELECT count(*) FROM event_logs").fetchone() == (0,):
                    mode = path.stat().st_mode & 0o777
                    self._empty[:] = [(connection.serialize(), mode)]

    def _forget(self, *files: str) -> None:
        with self._using:
            for file in files:
                self._engines.pop(file).dispose()


def keep_engines() -> None:
    """Let Dagster's storages of runs and schedules use one engine of a file as long as this
    process runs, where they would make one for each statement.

    It is for processes that have one home. With `keep_scripts`, an instance that is opened for a
    tick of a sensor takes 2 ms of the processor, not 29.
    """
    keep_scripts()
    for module in (sqlite_run_storage, sqlite_schedule_storage):
        module.create_engine = _kept_engine  # type: ignore[attr-defined]


def keep_scripts() -> None:
    """Let this process read Alembic's scripts once, which Dagster does for each database of an
    instance that is opened: they take 20 ms of the processor.
    """
    sql.ScriptDirectory = _KeptScripts  # type: ignore[attr-defined]


@cache
def _kept_engine(url: str, **_: object) -> Engine:
    # Dagster asks for a pool that keeps no connection.
    return create_engine(url, max_overflow=-1)


class _KeptScripts(ScriptDirectory):
    from_config = cache(ScriptDirectory.from_config)


@contextmanager
def kept_open(folder: Path) -> Iterator[None]:
    """Keep what SQLAlchemy opens of the SQLite files below a folder open until the end of the
    block.
    """
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
                if len(self._connections) > _MOST_FILES:
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
