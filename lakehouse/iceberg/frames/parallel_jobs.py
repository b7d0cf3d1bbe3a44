"""Concurrent Spark jobs, and queries that run as one job each."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from lakehouse.iceberg.catalog.iceberg_release import is_spark_3

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


T = TypeVar("T")
_INTERRUPTED_AGAIN_SECONDS = 0.2


@contextmanager
def concurrently(spark: "SparkSession", function: Callable[[], T]) -> Iterator["Future[T]"]:
    """Run a function in a thread during the block, and wait for it at the end.

    An error of the function is raised at the end, unless the block raises one. If the block is
    interrupted, as by Ctrl-C, all jobs of the session are interrupted.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="concurrently") as pool:
        future = pool.submit(_inheriting(spark, function))
        try:
            yield future
        except Exception:
            raise
        except BaseException:
            # Between two jobs there is nothing to interrupt.
            while wait([future], _INTERRUPTED_AGAIN_SECONDS).not_done:
                _interrupt(spark)
            raise
        future.result()


def _inheriting(spark: "SparkSession", function: Callable[[], T]) -> Callable[[], T]:
    """Pass Spark's thread-local properties to a function in another thread."""
    from pyspark import inheritable_thread_target

    decorate = inheritable_thread_target if is_spark_3() else inheritable_thread_target(spark)
    inheriting: Callable[[], T] = decorate(function)
    return inheriting


def _interrupt(spark: "SparkSession") -> None:
    from pyspark.sql.utils import is_remote

    if is_spark_3() and not is_remote():
        spark.sparkContext.cancelAllJobs()
    else:
        spark.interruptAll()


_ADAPTIVE = "spark.sql.adaptive.enabled"
_lock = Lock()
_settings_before: dict[int, list[str | None]] = {}
"""By session, the setting before each block; the first entry is the original one."""


@contextmanager
def planned_once(spark: "SparkSession") -> Iterator[None]:
    """Disable adaptive execution, which runs one job per stage.

    Aggregates do not benefit from it. Queries of other threads are affected meanwhile.
    """
    with _lock:
        settings = _settings_before.setdefault(id(spark), [])
        settings.append(settings[0] if settings else spark.conf.get(_ADAPTIVE))
        spark.conf.set(_ADAPTIVE, "false")
    try:
        yield
    finally:
        with _lock:
            before = settings.pop()
            if not settings:
                del _settings_before[id(spark)]
                spark.conf.set(_ADAPTIVE, before)  # type: ignore[arg-type]
