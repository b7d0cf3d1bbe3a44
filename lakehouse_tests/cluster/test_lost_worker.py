"""A worker that dies in the middle of a write takes nothing along but time: here its tables are
on a disk that all share.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.functions import col

from lakehouse.iceberg.read.inputs import incremental
from lakehouse.iceberg.write import merge_rows, stage
from lakehouse.iceberg.write.kept_rows import KeptRows
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse_tests.cluster.connect_server import connect_server
from lakehouse_tests.cluster.spark_cluster import Part, SparkCluster, running_cluster
from lakehouse_tests.conftest import settings_at
from lakehouse_tests.iceberg.declarations import content
from lakehouse_tests.iceberg.kills import (
    FIRST,
    LANDED,
    LATEST,
    SECOND,
    delivery,
    latest_rows,
    slow,
)
from lakehouse_tests.processes import Child, engine_of_process, start, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.long]

WORK: dict[str, tuple[Any, str]] = {
    "append": (stage, "append"),
    "compute": (KeptRows, "keep"),
    "audit": (merge_rows, "count"),
    "merge": (stage, "merge"),
}
"""What takes rows, in the order in which they come to it."""
SOAK = pytest.mark.soak


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that all processes of the cluster see."""
    home = tmp_path_factory.mktemp("shared") / "home"
    home.mkdir()
    return home


@pytest.fixture(scope="module")
def cluster(
    s3a_jars: None, home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkCluster]:
    """A cluster of its own, whose workers are killed."""
    folder = tmp_path_factory.mktemp("killed")
    with running_cluster(settings_at(home), folder / "parts", workers=0) as running:
        running.start_worker(kept=[home])
        running.start_worker(kept=[home])
        running.wait_for_workers(2)
        yield running


def write_slowly(name: str, work: list[str], gates: str) -> dict[str, Any]:
    """Write two deliveries to tables whose names end in one; of the second some work waits, each
    at a gate of its own.
    """
    engine = engine_of_process()
    landed, latest = (
        replace(table, name=f"{table.name}_{name}", rules=()) for table in (LANDED, LATEST)
    )

    def bring(file: str, rows: list[tuple[str, str]]) -> None:
        delivered = delivery(engine, file, rows)
        write(engine, landed, lambda: delivered().withColumn("n", col("n").cast("int")))
        write(engine, latest, latest_rows, {"landed": incremental(landed.name)})

    bring("first", FIRST)
    for one in work:
        _let_wait(*WORK[one], Path(gates) / one)
    bring("second", SECOND[:2])
    return {
        "landed": content(engine, landed.name, "id", "n"),
        "latest": content(engine, latest.name, "id", "n"),
        "staged": len([*(engine.lock_dir.parent / "staging").rglob("*.parquet")]),
    }


def _let_wait(owner: Any, name: str, gate: Path) -> None:
    """Let the rows that a function is given first come when a gate is opened."""
    real: Callable[..., Any] = getattr(owner, name)

    def waiting(*given: Any, **named: Any) -> Any:
        if gate.exists():
            return real(*given, **named)
        gate.mkdir(parents=True)
        rows = (slow(one, gate) if isinstance(one, DataFrame) else one for one in given)
        return real(*rows, **named)

    setattr(owner, name, waiting)


def kill_working(cluster: SparkCluster, home: Path, gate: Path, child: Child) -> None:
    """Kill the worker that has a task at a gate, and open it once another has come."""

    def is_asked() -> bool:
        assert child.is_alive, child.said
        return (gate / "asked").exists()

    wait_for(is_asked, f"a task at {gate}", 300)
    working = wait_for(lambda: [*filter(is_working, cluster.workers)], "a running task")
    working[0].kill()
    cluster.start_worker(kept=[home])
    cluster.wait_for_workers(2)
    (gate / "opened").touch()


def is_working(worker: Part) -> bool:
    """Whether it is alive, and its executors have begun a task that they did not finish."""
    said = worker.executors_said
    return worker.process.poll() is None and said.count("Running task") > said.count(
        "Finished task"
    )


@contextmanager
def spark_of(cluster: SparkCluster, home: Path, kind: str) -> Iterator[dict[str, str]]:
    """What a process is told whose Spark is the cluster, by itself or behind a Connect server."""
    if kind == "classic":
        yield cluster.client_environment
        return
    with connect_server(cluster, settings_at(home), kept=[home]) as server:
        yield server.client_environment


@pytest.mark.parametrize(
    ("kind", "work"),
    [
        ("classic", ["append", "merge"]),
        pytest.param("classic", [*WORK], marks=SOAK),
        pytest.param("connect", [*WORK], marks=SOAK),
    ],
    ids=["classic", "classic, at all work", "connect, at all work"],
)
def test_a_worker_killed_at_a_running_task_costs_time_and_nothing_else(
    cluster: SparkCluster, home: Path, kind: str, work: list[str]
) -> None:
    name = f"{kind}_{len(work)}"
    gates = home / name
    with spark_of(cluster, home, kind) as environment:
        child = start(
            home, write_slowly, env=environment, name=name, work=work, gates=str(gates)
        )
        try:
            for one in work:
                kill_working(cluster, home, gates / one, child)
            done = child.result()
        finally:
            child.kill()

    assert done == {
        "landed": [["a", 1], ["b", 2], ["b", 4], ["c", 3]],
        "latest": [["a", 1], ["b", 4], ["c", 3]],
        "staged": 0,
    }
    # An attempt at a task after its first.
    again = re.compile(r"Running task \d+\.[1-9]")
    assert any(again.search(worker.executors_said) for worker in cluster.workers)
