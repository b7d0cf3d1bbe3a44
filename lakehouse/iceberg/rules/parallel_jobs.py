"""Concurrent Spark jobs: while one query is planned or has few tasks, another uses the cores."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from lakehouse.iceberg.metadata.spark_line import is_spark_3

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
