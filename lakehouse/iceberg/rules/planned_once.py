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
"""By session, the setting before each thread inside the block; the first entry is the original
one, since all threads share the setting.
"""


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
