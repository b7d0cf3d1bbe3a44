"""Rows that are computed once and looked at more than once: kept where no executor's end takes
them along.

On one machine the Spark that computed them keeps them: it ends as a whole, and takes half the
time or less (`benchmarks/bench_kept_rows.py`). On a cluster each executor would have some for
itself, so that they are staged as Parquet, where every one can read them:

    staging/kept-rows/<moment>-<id>/<number>/part-….parquet
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
from lakehouse.tables.quoting import identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

_LOCAL = re.compile(r"local(\[.*\])?")
_ANCIENT_AS_THEY_ARE = {
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
"""Spark 3.5 refuses to write days before 1582 unless it is told how; Spark 4 writes them as these
say.
"""


class Keep(Protocol):
    """What returns the rows of a frame so that they are computed no more than once."""

    def __call__(self, frame: "DataFrame", *, eager: bool = False) -> "DataFrame":
        """Return a frame of the same rows.

        :param eager: whether they are computed now, also where the first look could do it.
        """


def is_on_one_machine(spark: "SparkSession") -> bool:
    """Whether a session computes in the JVM of its driver, which ends as a whole; a Connect server
    tells of its own. A client of Spark 3.5 cannot have rows kept there, on whatever it computes.
    """
    from pyspark.sql.utils import is_remote

    if is_spark_3() and is_remote():
        return False
    return bool(_LOCAL.fullmatch(spark.conf.get("spark.master", None) or ""))


def keep_on_one_machine(frame: "DataFrame", *, eager: bool = False) -> "DataFrame":
    """Return a frame that is computed once on one machine, and each time anew on a cluster: for
    rows that take little to compute.
    """
    return frame.localCheckpoint(eager) if is_on_one_machine(frame.sparkSession) else frame


@contextmanager
def keeping_rows(engine: Engine) -> Iterator["KeptRows"]:
    """Keep rows for as long as the block takes."""
    kept = KeptRows(engine)
    try:
        yield kept
    except BaseException:
        kept.end(is_over=False)
        raise
    else:
        kept.end(is_over=True)


class KeptRows:
    """The rows that one piece of work keeps; its threads share it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._opening = Lock()
        self._numbers = count(1)
        self._held = ExitStack()
        self._folder: KeptRowsFolder | None = None

    def keep(self, frame: "DataFrame", *, eager: bool = False) -> "DataFrame":
        """Return a frame of the same rows, which are computed once: on a cluster now, and read
        from there on.

        What Parquet has no type for stays on the executors; where one of them ends, a write
        begins again.
        """
        if is_on_one_machine(frame.sparkSession) or not _can_be_staged(frame.schema):
            return frame.localCheckpoint(eager)
        return stage_rows(frame, self._next_uri(), self._engine.store_options)

    def forget(self) -> None:
        """Remove what was kept so far: nobody reads it any more."""
        if self._folder:
            self._folder.try_to_remove()

    def end(self, *, is_over: bool) -> None:
        """Remove all, and let others know that nobody is at it.

        :param is_over: whether Spark did all that it was told; otherwise it may still write, and
            the next one looks again.
        """
        folder = self._folder
        if folder is None:
            return
        # What cannot be removed now is removed by the next one.
        is_removed = folder.try_to_remove()
        self._held.close()
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
        self._held.enter_context(folder.held())
        return folder


def stage_rows(frame: "DataFrame", uri: str, options: Mapping[str, str]) -> "DataFrame":
    """Write rows as Parquet, and return them as they are read from there.

    :param options: what Spark has to be told to reach the place.
    """
    from pyspark.sql.types import NullType, StructType

    spark = frame.sparkSession
    if is_spark_3():
        set_all(spark, _ANCIENT_AS_THEY_ARE)
    fields = frame.schema.fields
    # Parquet has no type of nothing but NULL.
    written = [field for field in fields if not isinstance(field.dataType, NullType)]
    rows = frame.select(*(identifier(field.name) for field in written))
    rows.write.options(**options).parquet(uri)
    # Of no rows there may be no file that tells the columns.
    rows = spark.read.schema(StructType(written)).options(**options).parquet(uri)
    names = {field.name for field in written}
    terms = []
    for name in (field.name for field in fields):
        quoted = identifier(name)
        terms.append(quoted if name in names else f"NULL AS {quoted}")
    return rows.selectExpr(*terms)


def _can_be_staged(schema: "StructType") -> bool:
    """Whether Parquet can hold rows of these columns: it tells them apart by their names, and
    knows fewer types than Spark.
    """
    from pyspark.sql.types import NullType

    names = {field.name.lower() for field in schema.fields}
    types = [field.dataType for field in schema.fields]
    held = [kind for kind in types if not isinstance(kind, NullType)]
    return bool(held) and len(names) == len(types) and all(map(_is_held, held))


def _is_held(kind: "DataType") -> bool:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        return bool(kind.fields) and all(_is_held(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _is_held(kind.elementType)
    if isinstance(kind, MapType):
        return _is_held(kind.keyType) and _is_held(kind.valueType)
    return kind.typeName() not in ("void", "interval")
