"""Cache of computed rows that are used several times, safe from the loss of executors.

On one machine, Spark caches them: the process ends as a unit, and this takes half the time or
less (`benchmarks/bench_kept_rows.py`). On a cluster, each executor would have only a part of
them. Therefore they are staged as Parquet, which every executor can read:

    staging/kept-rows/<timestamp>-<id>/<number>/part-….parquet

A folder is removed by the process that created it. After a kill, its lock is free, so that the
next process removes the rows.
"""

import logging
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from lakehouse.errors import TableBusy
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.catalog.iceberg_release import is_spark_3
from lakehouse.iceberg.frames.pyspark_internals import set_all
from lakehouse.storage.file_lock import BRIEF_SECONDS, file_lock, is_file_locked
from lakehouse.storage.object_store import ObjectStore, StoredObject

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_log = logging.getLogger(__name__)
KEPT_ROWS = "kept-rows"
"""The subfolder for cached rows; not a valid feed name."""
_PREFIX = f"staging/{KEPT_ROWS}/"
_TIME_FORMAT = "%Y%m%dT%H%M%SZ"
_LATE_WRITE_PERIOD = timedelta(days=1)
"""How long a Spark server can still write after its client exited."""
_FOREIGN_RETENTION = timedelta(days=7)
"""Minimum age of an abandoned folder without a lock here; that of blocked branches."""


@dataclass(frozen=True)
class KeptRowsFolder:
    """A folder of cached rows, in a home or a bucket."""

    store: ObjectStore
    lock_dir: Path
    name: str
    files: Sequence[StoredObject] = field(default=(), compare=False)
    """Its files when it was listed."""

    @classmethod
    def new(cls, store: ObjectStore, lock_dir: Path) -> "KeptRowsFolder":
        """Return a new unique folder, without creating it."""
        timestamp = datetime.now(UTC).strftime(_TIME_FORMAT)
        return cls(store, lock_dir, f"{timestamp}-{secrets.token_hex(8)}")

    @property
    def prefix(self) -> str:
        """The key prefix of its objects."""
        return f"{_PREFIX}{self.name}/"

    @property
    def lock_file(self) -> Path:
        """The lock that its creator holds; other hosts do not have it."""
        return self.lock_dir / KEPT_ROWS / f"{self.name}.lock"

    @property
    def begun_at(self) -> datetime:
        """When it was created, in whole seconds; the minimum datetime if its name is invalid."""
        try:
            begun_at = datetime.strptime(self.name.partition("-")[0], _TIME_FORMAT)
        except ValueError:
            return datetime.min.replace(tzinfo=UTC)
        return begun_at.replace(tzinfo=UTC)

    @property
    def is_left(self) -> bool:
        """Whether no process uses it any more, as far as this host can determine."""
        if self.lock_file.exists():
            return not is_file_locked(self.lock_file)
        return self._is_older_than(_FOREIGN_RETENTION)

    def uri(self, number: int) -> str:
        """Return the location of the rows of one DataFrame, for Spark."""
        return self.store.spark_uri(f"{self.prefix}{number}")

    def locked(self, wait_seconds: float = BRIEF_SECONDS) -> AbstractContextManager[None]:
        """Lock the folder, so that no other process removes it.

        :raises TableBusy: if another process holds the lock for longer than `wait_seconds`.
        """
        busy = TableBusy(
            f"Rows in {self.store.uri(self.prefix)} are in use by another process, and were not"
            f" free within {wait_seconds:.0f} s.",
            next_step="Wait for that run to end, or stop it, and run this again.",
        )
        return file_lock(self.lock_file, wait_seconds, busy)

    def try_to_remove(self) -> bool:
        """Remove the folder's content; on failure, log a warning and return False."""
        try:
            self.store.remove_folder(self.prefix)
        except Exception as error:
            place = self.store.uri(self.prefix)
            _log.warning("%s was not removed; the next write tries again: %s", place, error)
            return False
        return True

    def remove_if_left(self) -> bool:
        """Remove the folder if it is abandoned, and return whether it was removed."""
        if not self.lock_file.exists():
            return self.is_left and self.try_to_remove()
        try:
            with self.locked(wait_seconds=0):
                is_removed = self.try_to_remove()
                if is_removed and self._is_older_than(_LATE_WRITE_PERIOD):
                    self.lock_file.unlink(missing_ok=True)
        except TableBusy:
            return False
        return is_removed

    def _is_older_than(self, age: timedelta) -> bool:
        return datetime.now(UTC) - age > self.begun_at


def list_folders(store: ObjectStore, lock_dir: Path) -> list[KeptRowsFolder]:
    """Return the folders that have files, or that Spark can still write to, by name."""
    files: dict[str, list[StoredObject]] = {}
    for lock_file in (lock_dir / KEPT_ROWS).glob("*.lock"):
        files[lock_file.stem] = []
    for item in store.remains(_PREFIX):
        name, separator, _ = item.key.removeprefix(_PREFIX).partition("/")
        # Objects outside of a folder are folder markers of Hadoop.
        if name and separator:
            files.setdefault(name, []).append(item)
    return [KeptRowsFolder(store, lock_dir, name, files[name]) for name in sorted(files)]


def remove_left(store: ObjectStore, lock_dir: Path) -> None:
    """Remove the rows of processes that exited; a failed listing is logged."""
    try:
        folders = list_folders(store, lock_dir)
    except Exception as error:
        _log.warning(
            "%s was not checked for remaining rows; the next write tries again: %s",
            store.uri(_PREFIX),
            error,
        )
        return
    for folder in folders:
        folder.remove_if_left()


_LOCAL = re.compile(r"local(\[.*\])?")
_ANCIENT_DATE_SETTINGS = {
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
"""Spark 3.5 needs these defaults of Spark 4 to write dates before 1582."""


Keep = Callable[..., "DataFrame"]
"""Caches the rows of a DataFrame, so that they are computed once, and returns one with the same
rows; with `eager`, they are computed now, even if their first use could.
"""


def is_on_one_machine(spark: "SparkSession") -> bool:
    """Whether a session, or its Connect server, computes in the JVM of its driver.

    False for a client of Spark 3.5, which cannot cache rows on its server.
    """
    from pyspark.sql.utils import is_remote

    if is_spark_3() and is_remote():
        return False
    return bool(_LOCAL.fullmatch(spark.conf.get("spark.master", None) or ""))


def keep_on_one_machine(frame: "DataFrame", *, eager: bool = False) -> "DataFrame":
    """Cache rows that are cheap to compute on one machine; recompute them on a cluster."""
    return frame.localCheckpoint(eager) if is_on_one_machine(frame.sparkSession) else frame


@contextmanager
def keeping_rows(engine: Engine) -> Iterator["KeptRows"]:
    """Cache rows until the block exits."""
    kept, is_over = KeptRows(engine), False
    try:
        yield kept
        is_over = True
    finally:
        kept.end(is_over=is_over)


class KeptRows:
    """The cached rows of one unit of work, shared by its threads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._opening = Lock()
        self._numbers = count(1)
        self._lock = ExitStack()
        self._folder: KeptRowsFolder | None = None

    def keep(self, frame: "DataFrame", *, eager: bool = False) -> "DataFrame":
        """Cache the rows of a DataFrame; on a cluster they are written now."""
        if is_on_one_machine(frame.sparkSession):
            return frame.localCheckpoint(eager)
        with self._opening:
            self._folder = self._folder or self._open()
            uri = self._folder.uri(next(self._numbers))
        return stage_rows(frame, uri, self._engine.store_options)

    def forget(self) -> None:
        """Remove the rows cached so far, which are not used any more."""
        if self._folder:
            self._folder.try_to_remove()

    def end(self, *, is_over: bool) -> None:
        """Remove all rows and release the lock.

        :param is_over: whether Spark is done; otherwise the next process checks again.
        """
        folder = self._folder
        if folder is None:
            return
        # The next process removes what cannot be removed now.
        is_removed = folder.try_to_remove()
        self._lock.close()
        if is_removed and is_over:
            folder.lock_file.unlink(missing_ok=True)

    def _open(self) -> KeptRowsFolder:
        store, lock_dir = self._engine.store, self._engine.lock_dir
        remove_left(store, lock_dir)
        folder = KeptRowsFolder.new(store, lock_dir)
        self._lock.enter_context(folder.locked())
        return folder


def stage_rows(frame: "DataFrame", uri: str, options: Mapping[str, str]) -> "DataFrame":
    """Write rows as Parquet, and return a DataFrame that reads them.

    :param options: Spark options to access the location.
    """
    spark = frame.sparkSession
    if is_spark_3():
        set_all(spark, _ANCIENT_DATE_SETTINGS)
    frame.write.options(**options).parquet(uri)
    # Without rows there can be no file with a schema.
    return spark.read.schema(frame.schema).options(**options).parquet(uri)
