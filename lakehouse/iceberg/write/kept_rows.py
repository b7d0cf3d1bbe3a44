"""Cache of computed rows that are used several times, safe from the loss of executors.

On one machine, Spark caches them: the process ends as a unit, and this takes half the time or
less (`benchmarks/bench_kept_rows.py`). On a cluster, each executor would have only a part of
them. Therefore they are staged as Parquet, which every executor can read:

    staging/kept-rows/<timestamp>-<id>/<number>/part-….parquet
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.pyspark_internals import set_all
from lakehouse.iceberg.metadata.spark_line import is_spark_3
from lakehouse.iceberg.write.kept_rows_folder import KeptRowsFolder, remove_left

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOCAL = re.compile(r"local(\[.*\])?")
_ANCIENT_DATE_SETTINGS = {
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
"""Spark 3.5 cannot write dates before 1582 without these settings; they are the defaults of
Spark 4.
"""


class Keep(Protocol):
    """Caches the rows of a DataFrame, so that they are computed only once."""

    def __call__(self, frame: "DataFrame", *, eager: bool = False) -> "DataFrame":
        """Return a DataFrame with the same rows.

        :param eager: whether to compute them now, even if their first use could.
        """


def is_on_one_machine(spark: "SparkSession") -> bool:
    """Whether a session computes in the JVM of its driver; a Connect server reports its own
    mode.

    False for a client of Spark 3.5, which cannot cache rows on its server.
    """
    from pyspark.sql.utils import is_remote

    if is_spark_3() and is_remote():
        return False
    return bool(_LOCAL.fullmatch(spark.conf.get("spark.master", None) or ""))


def keep_on_one_machine(frame: "DataFrame", *, eager: bool = False) -> "DataFrame":
    """Cache rows on one machine, and recompute them on a cluster; for rows that are cheap to
    compute.
    """
    return frame.localCheckpoint(eager) if is_on_one_machine(frame.sparkSession) else frame


@contextmanager
def keeping_rows(engine: Engine) -> Iterator["KeptRows"]:
    """Cache rows until the block exits."""
    kept = KeptRows(engine)
    try:
        yield kept
    except BaseException:
        kept.end(is_over=False)
        raise
    else:
        kept.end(is_over=True)


class KeptRows:
    """The cached rows of one unit of work, shared by its threads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._opening = Lock()
        self._numbers = count(1)
        self._lock = ExitStack()
        self._folder: KeptRowsFolder | None = None

    def keep(self, frame: "DataFrame", *, eager: bool = False) -> "DataFrame":
        """Cache the rows of a DataFrame: on a cluster they are written now, and read from
        there.
        """
        if is_on_one_machine(frame.sparkSession):
            return frame.localCheckpoint(eager)
        return stage_rows(frame, self._next_uri(), self._engine.store_options)

    def forget(self) -> None:
        """Remove the rows cached so far, which are not used any more."""
        if self._folder:
            self._folder.try_to_remove()

    def end(self, *, is_over: bool) -> None:
        """Remove all rows and release the lock.

        :param is_over: whether Spark has completed all requests; otherwise it can still write,
            and the next process checks again.
        """
        folder = self._folder
        if folder is None:
            return
        # The next process removes what cannot be removed now.
        is_removed = folder.try_to_remove()
        self._lock.close()
        if is_removed and is_over:
            folder.lock_file.unlink(missing_ok=True)

    def _next_uri(self) -> str:
        with self._opening:
            if self._folder is None:
                self._folder = self._open()
            return self._folder.uri(next(self._numbers))

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
