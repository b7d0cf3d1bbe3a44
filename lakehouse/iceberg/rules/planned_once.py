"""Queries that run as one Spark job each."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ADAPTIVE = "spark.sql.adaptive.enabled"
_lock = Lock()
_settings_before: dict[int, list[str | None]] = {}
"""By session, its setting before each thread that is inside: it is one for all threads, and the
first to come saw it as it was.
"""


@contextmanager
def planned_once(spark: "SparkSession") -> Iterator[None]:
    """Let queries be planned before they run, and not again after each stage, which makes a job
    of every stage.

    An aggregate of a table has nothing to be planned again. So are queries of other threads
    meanwhile.
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
