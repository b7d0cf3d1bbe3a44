"""Queries that run as one Spark job each."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ADAPTIVE = "spark.sql.adaptive.enabled"
_lock = Lock()
_inside: dict[int, list[str | None]] = {}
"""By session, what those found who are inside: it is one for all threads, and the first to come
saw it as it was.
"""


@contextmanager
def planned_once(spark: "SparkSession") -> Iterator[None]:
    """Let queries be planned before they run, and not again after each stage, which makes a job
    of every stage.

    An aggregate of a table has nothing to be planned again. So are queries of other threads
    meanwhile.
    """
    with _lock:
        found = _inside.setdefault(id(spark), [])
        found.append(found[0] if found else spark.conf.get(_ADAPTIVE))
        spark.conf.set(_ADAPTIVE, "false")
    try:
        yield
    finally:
        with _lock:
            before = found.pop()
            if not found:
                del _inside[id(spark)]
                spark.conf.set(_ADAPTIVE, before)  # type: ignore[arg-type]
