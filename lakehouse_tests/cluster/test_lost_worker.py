"""A worker that dies in the middle of reading files or of a write takes nothing along but time."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lakehouse.ingestion import executor_reading
from lakehouse.ingestion.staged_rows import open_staging
from lakehouse.settings import Settings
from lakehouse.storage.stores import open_store
from lakehouse_tests.cluster.connect_server import connect_server
from lakehouse_tests.cluster.deliveries import BROUGHT, WORK, Deliveries
from lakehouse_tests.cluster.gates import let_wait, wait_until_asked
from lakehouse_tests.cluster.lake import KINDS
from lakehouse_tests.cluster.spark_cluster import SparkCluster, on_account
from lakehouse_tests.cluster.test_executor_reading import land_waiting
from lakehouse_tests.conftest import settings_at
from lakehouse_tests.ingestion.conftest import FRUITS
from lakehouse_tests.processes import Child, engine_of_process, start, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.soak]
BY_EXECUTORS = {
    "LAKEHOUSE_EXECUTORS_READ": "always",
    "LAKEHOUSE_EXECUTOR_PYTHON": sys.executable,
}
# An attempt at a task, or at a stage, after its first.
AGAIN = re.compile(r"Running task \d+\.(?:[1-9]|\d+ in stage \d+\.[1-9])")


def write_slowly(name: str, gates: str) -> dict[str, Any]:
    """Bring two deliveries; of the second all work waits, each at a gate of its own."""
    engine = engine_of_process()
    deliveries = Deliveries(engine, name)
    deliveries.bring_first()
    for one, place in WORK.items():
        let_wait(*place, Path(gates) / one)
    brought = deliveries.bring_second()
    return {**brought, "staged": len(engine.store.remains("staging/"))}


class Readers:
    """Stands for a session whose tasks wait at a gate once they have staged what they read."""

    def __init__(self, session: Any, gate: Path) -> None:
        self._session = session
        self._asked, self._opened = str(gate / "asked"), str(gate / "opened")

    def range(self, *given: int) -> "Readers":
        """Take the numbers of the tasks."""
        self._numbers = self._session.range(*given)
        return self

    def mapInArrow(self, read: Callable[..., Iterable[Any]], schema: str) -> Any:  # noqa: N802
        """Return what the tasks say."""
        asked, opened = self._asked, self._opened

        def read_and_wait(batches: Any) -> Iterator[Any]:
            # Runs in a worker of Spark, which imports nothing of the tests.
            from pathlib import Path
            from time import sleep

            for outcomes in read(batches):
                Path(asked).write_text(str(Path.cwd()))
                while not Path(opened).exists():
                    sleep(0.05)
                yield outcomes

        return self._numbers.mapInArrow(read_and_wait, schema)


def let_readers_wait(gate: Path) -> None:
    """Let the tasks that read files wait at a gate once they have staged what they read."""
    real = executor_reading._outcomes
    gate.mkdir(parents=True)
    setattr(  # noqa: B010
        executor_reading,
        "_outcomes",
        lambda session, task: real(Readers(session, gate), task),  # type: ignore[arg-type]
    )


def read_slowly(gate: str) -> dict[str, Any]:
    """Land what waits in the inbox of the fruits, by executors that wait at a gate."""
    let_readers_wait(Path(gate))
    return land_waiting(driver_reads=False)


def kill_working(cluster: SparkCluster, gate: Path, child: Child) -> None:
    """Kill the worker that has a task at a gate, and open it once another has come, and the task
    that was lost is run again.
    """
    wait_until_asked(gate, child)
    # A task works in a folder of its executor, which is below that of its worker.
    place = wait_for((gate / "asked").read_text, "a note of where the task is")
    (worker,) = [one for one in cluster.workers if Path(place).is_relative_to(one.folder)]
    before = attempts_again(cluster)
    worker.kill()
    assert cluster.is_at_work(worker), f"{worker.folder} died with no task"
    cluster.start_worker()
    cluster.wait_for_workers(2)
    wait_for(
        lambda: attempts_again(cluster) > before or not child.is_alive, "a second attempt", 300
    )
    assert child.is_alive, child.said
    (gate / "opened").touch()


def attempts_again(cluster: SparkCluster) -> int:
    """Return how many tasks were begun again so far."""
    return sum(len(AGAIN.findall(worker.executors_said())) for worker in cluster.workers)


@contextmanager
def spark_of(cluster: SparkCluster, settings: Settings, kind: str) -> Iterator[dict[str, str]]:
    """What a process is told whose Spark is the cluster, by itself or behind a Connect server."""
    if kind == "classic":
        yield cluster.client_environment
        return
    with connect_server(cluster, settings, kept=cluster.kept) as server:
        yield server.client_environment


def write_while_workers_die(
    cluster: SparkCluster, home: Path, env: dict[str, str], gates: Path
) -> None:
    """Bring two deliveries, and kill a worker at each work of the second: what the tables hold is
    what was brought, each once, and nothing is left of what was staged.
    """
    child = start(home, write_slowly, env=env, name=gates.name, gates=str(gates))
    try:
        for one in WORK:
            kill_working(cluster, gates / one, child)
        done = child.result()
    finally:
        child.kill()
    assert done == {**BROUGHT, "staged": 0}


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_killed_at_a_running_task_costs_time_and_nothing_else(
    mortal_cluster: SparkCluster, shared_home: Path, kind: str
) -> None:
    with spark_of(mortal_cluster, settings_at(shared_home), kind) as env:
        write_while_workers_die(mortal_cluster, shared_home, env, shared_home / kind)


@pytest.mark.parametrize("kind", KINDS)
def test_neither_does_one_that_writes_to_a_bucket_and_sees_no_file_of_the_drivers(
    mortal_cluster: SparkCluster, aws_settings: Settings, gate: Path, kind: str
) -> None:
    with spark_of(mortal_cluster, aws_settings, kind) as spark:
        env = on_account(aws_settings) | spark
        write_while_workers_die(mortal_cluster, aws_settings.home, env, gate)


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_killed_when_it_has_staged_files_has_them_read_again_and_landed_once(
    mortal_cluster: SparkCluster, aws_settings: Settings, gate: Path, kind: str
) -> None:
    for number in range(3):
        row = f"{number},Fig,true"
        open_store(aws_settings).write_text(
            f"{FRUITS.inbox}{number}.csv", f"id,fruit,berry\n{row}\n"
        )
    with spark_of(mortal_cluster, aws_settings, kind) as spark:
        env = on_account(aws_settings) | spark | BY_EXECUTORS
        child = start(aws_settings.home, read_slowly, env=env, gate=str(gate))
        try:
            kill_working(mortal_cluster, gate, child)
            done = child.result()
        finally:
            child.kill()

    assert done == {
        "rows": [{"id": str(n), "_source_file": f"{n}.csv"} for n in range(3)],
        "rejected": [],
        "warnings": [],
    }
    staging = open_staging(aws_settings)
    assert staging is not None
    assert staging.store.all_versions("staging/") == []
