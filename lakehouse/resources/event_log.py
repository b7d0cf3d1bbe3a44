"""Dagster's SQLite event log, with a file's engine kept from one event to the next.

Dagster's own makes an engine for each connection, and with it loses what SQLAlchemy keeps in one: the statements that
it compiled, and the connection.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from threading import RLock
from typing import Any

from dagster._core.storage.event_log.sqlite.sqlite_event_log import INDEX_SHARD_NAME, SqliteEventLogStorage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from sqlalchemy import Connection, Engine, create_engine

_MOST = 4
"""Engines that are kept: a command is at one run at a time."""


class EventLog(SqliteEventLogStorage):
    """An event log in the same files and of the same tables, so that others read and write it beside this one."""

    def __init__(self, base_dir: str, inst_data: Any = None) -> None:
        self._engines: OrderedDict[str, Engine] = OrderedDict()
        self._using = RLock()
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
        with super().run_connection(file):
            # The tables are there now.
            pass
        engine = create_engine(self.conn_string_for_shard(file), connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS})
        self._engines[file] = engine
        if len(self._engines) > _MOST:
            self._forget(next(name for name in self._engines if name != INDEX_SHARD_NAME))
        return engine

    def _forget(self, *files: str) -> None:
        with self._using:
            for file in files:
                self._engines.pop(file).dispose()
