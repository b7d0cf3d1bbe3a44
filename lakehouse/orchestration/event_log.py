"""Dagster's SQLite event log, with a file's engine kept from one event to the next.

Dagster's own makes an engine for each connection, and with it loses what SQLAlchemy keeps in
one: the statements that it compiled, and the connection. It makes the tables of each run's file
one by one, and notes their revision by Alembic; here the second file is a copy of the first as
it was then. And it asks for each check whether there is a table for it, and which
materialization it speaks of; here the checks of one are told by one answer.
"""

import sqlite3
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

from dagster import (
    AssetKey,
    AssetRecordsFilter,
    DagsterEventType,
    EventLogEntry,
    EventRecordsResult,
)
from dagster._core.storage.event_log.sqlite.sqlite_event_log import (
    INDEX_SHARD_NAME,
    SqliteEventLogStorage,
)
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from sqlalchemy import Connection, Engine, create_engine

from lakehouse.storage.atomic_files import create_bytes

_MOST = 4
"""Engines that are kept: a command is at one run at a time."""
_REMEMBERED_SECONDS = 1.0
_OF_CHECKS = (DagsterEventType.ASSET_CHECK_EVALUATION, DagsterEventType.STEP_OUTPUT)
"""Events that a check leaves: what it found, and that its step has handed it on."""


class EventLog(SqliteEventLogStorage):
    """An event log in the same files and of the same tables, so that others read and write it
    beside this one.
    """

    def __init__(self, base_dir: str, inst_data: Any = None) -> None:
        self._engines: OrderedDict[str, Engine] = OrderedDict()
        self._using = RLock()
        self._empty, self._empty_mode = b"", 0
        self._told: tuple[float, tuple[Any, ...], EventRecordsResult] | None = None
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
        the one told last.
        """
        if event.dagster_event_type not in _OF_CHECKS:
            self._told = None
        super().store_event(event)

    def fetch_materializations(
        self,
        records_filter: AssetKey | AssetRecordsFilter,
        limit: int,
        cursor: str | None = None,
        ascending: bool = False,
    ) -> EventRecordsResult:
        """Return materializations; for the checks of one in a row, those that were told for the
        first of them.
        """
        asked, now = (records_filter, limit, cursor, ascending), time.monotonic()
        if self._told and self._told[1] == asked and now - self._told[0] < _REMEMBERED_SECONDS:
            return self._told[2]
        found = super().fetch_materializations(records_filter, limit, cursor, ascending)
        self._told = (now, asked, found)
        return found

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
        if len(self._engines) > _MOST:
            self._forget(next(name for name in self._engines if name != INDEX_SHARD_NAME))
        return engine

    def _make_tables(self, file: str) -> None:
        path = Path(self.path_for_shard(file))
        is_new = not path.exists()
        if self._empty and is_new and create_bytes(path, self._empty, mode=self._empty_mode):
            return
        with super().run_connection(file):
            pass
        if is_new and file != INDEX_SHARD_NAME:
            with closing(sqlite3.connect(path)) as connection:
                if connection.execute("SELECT count(*) FROM event_logs").fetchone() == (0,):
                    self._empty, self._empty_mode = (
                        connection.serialize(),
                        path.stat().st_mode & 0o777,
                    )

    def _forget(self, *files: str) -> None:
        with self._using:
            for file in files:
                self._engines.pop(file).dispose()
