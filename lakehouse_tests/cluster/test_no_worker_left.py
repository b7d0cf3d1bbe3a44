"""A run on a cluster that loses all workers fails within the configured time."""

from pathlib import Path

import pytest

from lakehouse.settings import Settings
from lakehouse_tests.cluster.gates import wait_until_asked
from lakehouse_tests.cluster.lake import lake_on
from lakehouse_tests.cluster.slow_ingest import check_once, deliver, ingest_slowly
from lakehouse_tests.cluster.spark_cluster import SparkCluster
from lakehouse_tests.processes import start, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.soak]


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

        lake.run("ingest", "fruits")

        check_once(lake, "1.csv")
