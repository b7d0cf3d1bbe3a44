"""Kill the worker of a cluster whose task waits at a gate."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from lakehouse.ingestion.staging import executor_reading
from lakehouse_tests.cluster.gates import wait_until_asked
from lakehouse_tests.cluster.spark_cluster import SparkCluster
from lakehouse_tests.processes import Child, wait_for

BY_EXECUTORS = {
    "LAKEHOUSE_EXECUTORS_READ": "always",
    "LAKEHOUSE_EXECUTOR_PYTHON": sys.executable,
}
# An attempt at a task, or at a stage, after its first.
AGAIN = re.compile(r"Running task \d+\.(?:[1-9]|\d+ in stage \d+\.[1-9])")


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


def kill_working(cluster: SparkCluster, gate: Path, child: Child) -> None:
    """Kill the worker of a waiting task; open the gate once the task runs again."""
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
