"""All workers of a cluster are gone in the middle of a run: it publishes what was staged, since that
is no work of executors, and whatever needs one fails by name within the stated time.
"""

from pathlib import Path
from typing import Any

import pytest

from lakehouse.iceberg.write import append_or_overwrite, merge_rows
from lakehouse.settings import Settings
from lakehouse_tests.cluster.deliveries import BROUGHT, Deliveries
from lakehouse_tests.cluster.gates import let_publish_wait, wait_until_asked
from lakehouse_tests.cluster.lake import KINDS, lake_on
from lakehouse_tests.cluster.slow_ingest import check_once, deliver, ingest_slowly
from lakehouse_tests.cluster.spark_cluster import SparkCluster
from lakehouse_tests.processes import engine_of_process, start, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.soak]
PUBLISHERS = {"append": append_or_overwrite, "merge": merge_rows}


def write_and_wait_to_publish(gates: str) -> dict[str, Any]:
    """Bring two deliveries; the second is published to each table when a gate is opened."""
    deliveries = Deliveries(engine_of_process(), "published")
    deliveries.bring_first()
    for name, module in PUBLISHERS.items():
        let_publish_wait(module, Path(gates) / name)
    return deliveries.bring_second()


def kill_all(cluster: SparkCluster) -> None:
    """Leave a cluster no worker."""
    for worker in cluster.workers:
        if worker.process.poll() is None:
            worker.kill()
    cluster.wait_for_workers(0)


def start_two(cluster: SparkCluster) -> None:
    """Give a cluster two workers again."""
    for _ in range(2):
        cluster.start_worker()
    cluster.wait_for_workers(2)


@pytest.mark.parametrize("kind", KINDS)
def test_publishing_needs_no_worker(
    mortal_cluster: SparkCluster, aws_settings: Settings, gate: Path, kind: str
) -> None:
    with lake_on(mortal_cluster, aws_settings, kind) as lake:
        home, env = aws_settings.home, {**lake.env}
        child = start(home, write_and_wait_to_publish, env=env, gates=str(gate))
        try:
            for name in PUBLISHERS:
                wait_until_asked(gate / name, child)
                kill_all(mortal_cluster)
                (gate / name / "opened").touch()
                wait_for(
                    (gate / name / "published").exists, f"an {name} that is published", 300
                )
                start_two(mortal_cluster)
            assert child.result() == BROUGHT
        finally:
            child.kill()


def test_a_run_that_lost_all_executors_fails_and_the_next_run_continues(
    mortal_cluster: SparkCluster, aws_settings: Settings, gate: Path
) -> None:
    with lake_on(mortal_cluster, aws_settings, "classic") as lake:
        deliver(lake, "1.csv")
        env = {**lake.env, "LAKEHOUSE_EXECUTOR_WAIT_SECONDS": "60"}
        child = start(aws_settings.home, ingest_slowly, env=env, gate=str(gate))
        try:
            wait_until_asked(gate, child)
            wait_for(mortal_cluster.working, "a running task", 300)
            kill_all(mortal_cluster)
            assert child.result() == 1
        finally:
            child.kill()
            start_two(mortal_cluster)
        (line,) = [line for line in child.said.splitlines() if "xecutor" in line]
        assert f"All executors on {mortal_cluster.url} ended" in line
        assert "it has no worker" in line

        lake.run("ingest", "fruits")

        check_once(lake, "1.csv")
