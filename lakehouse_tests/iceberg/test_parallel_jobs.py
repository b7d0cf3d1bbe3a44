"""What runs in a thread beside a block: it has ended when the block has, and touches nothing of
it.
"""

import time
from threading import Event

import pytest
from pyspark.sql import SparkSession

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.snapshot_properties import session_with
from lakehouse.iceberg.frames.parallel_jobs import concurrently
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse_tests.iceberg.declarations import EVENTS, put

pytestmark = pytest.mark.spark


def test_it_has_ended_when_the_block_has(spark: SparkSession) -> None:
    may_end = Event()

    def slow() -> str:
        may_end.wait()
        time.sleep(0.3)
        return "found"

    with concurrently(spark, slow) as found:
        assert not found.done()
        may_end.set()
    assert found.done() and found.result() == "found"


def test_its_error_is_raised_at_the_end_unless_the_block_raises_one(
    spark: SparkSession,
) -> None:
    ended = []

    def fails() -> None:
        raise ValueError("beside")

    with pytest.raises(ValueError, match="beside"), concurrently(spark, fails):
        ended.append("block")
    with pytest.raises(LookupError, match="block"), concurrently(spark, fails):
        raise LookupError("block")
    assert ended == ["block"]


@pytest.mark.timeout(180)
def test_its_jobs_end_with_a_block_that_is_interrupted(spark: SparkSession) -> None:
    begun = Event()

    def sleeps_for_long() -> None:
        rows = spark.range(0, 10_000, numPartitions=10_000)
        begun.set()
        rows.selectExpr("reflect('java.lang.Thread', 'sleep', 100L) AS slept").collect()

    with pytest.raises(KeyboardInterrupt), concurrently(spark, sleeps_for_long) as left:
        begun.wait()
        raise KeyboardInterrupt
    assert isinstance(left.exception(), Exception), "it was not waited for to its end"


def test_a_commit_has_its_own_stamp_and_none_of_a_statement_beside_it(
    embedded_engine: Engine,
) -> None:
    put(embedded_engine, EVENTS, [(1, 1)])
    other = {
        "lakehouse.read": '{"silver.other": "7"}',
        "lakehouse.spans": '[["a", "b"]]',
        "lakehouse.run-id": "other",
    }
    inside, over = Event(), Event()

    def commits_beside() -> None:
        with session_with(embedded_engine.spark, other):
            inside.set()
            over.wait()

    with concurrently(embedded_engine.spark, commits_beside):
        inside.wait()
        try:
            put(embedded_engine, EVENTS, [(2, 2)])
        finally:
            over.set()
    main = read_history(embedded_engine, EVENTS.name).main
    assert (
        main
        and main.commit
        and (main.commit.read, main.commit.merged_ranges, main.commit.run_id) == ({}, (), "")
    )
