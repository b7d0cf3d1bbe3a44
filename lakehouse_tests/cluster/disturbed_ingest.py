"""Ingests of fruits that wait at a gate for somebody to disturb them, each another moment of it."""

from pathlib import Path

from lakehouse.cli.program import run
from lakehouse.iceberg.write import append_or_overwrite
from lakehouse.spark import spark_session
from lakehouse_tests.cluster.gates import let_publish_wait
from lakehouse_tests.cluster.killed_workers import let_readers_wait
from lakehouse_tests.cluster.slow_ingest import ingest_slowly


def ingest_while_readers_wait(gate: str) -> int:
    """Ingest by executors; the task that reads waits once it has staged what it read."""
    let_readers_wait(Path(gate))
    return run(("ingest", "fruits"))


def ingest_while_publishing_waits(gate: str) -> int:
    """Ingest; the driver waits before it publishes what it landed in bronze."""
    let_publish_wait(append_or_overwrite, Path(gate))
    return run(("ingest", "fruits"))


def ingest_and_give_up_soon(gate: str) -> int:
    """Ingest slowly; a server that is gone is tried for a second, and not for 17."""
    setattr(spark_session, "_CONNECT_RETRIES", 3)  # noqa: B010
    return ingest_slowly(gate)
