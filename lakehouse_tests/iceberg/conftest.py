"""What the tests of the engine share: counting Spark's jobs, a machine in another zone, and
reading a table as others do.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession


@dataclass
class JobCount:
    """How many Spark jobs ran inside a `with` block; known after it."""

    jobs: int = -1


@pytest.fixture
def count_jobs(spark: SparkSession) -> Callable[[], AbstractContextManager[JobCount]]:
    """Count the Spark jobs of a block through Spark's own status tracker."""

    @contextmanager
    def counting() -> Iterator[JobCount]:
        group = uuid4().hex
        counted = JobCount()
        spark.sparkContext.setJobGroup(group, "counted by a test")
        try:
            yield counted
        finally:
            counted.jobs = len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
            spark.sparkContext._jsc.clearJobGroup()

    return counting


@pytest.fixture
def far_from_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose own time is not UTC."""
    monkeypatch.setenv("TZ", "Asia/Kuala_Lumpur")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
