"""Executors come and go by dynamic allocation with shuffle tracking."""

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from lakehouse.settings import Settings
from lakehouse_tests.cluster.connect_server import connect_server
from lakehouse_tests.cluster.deliveries import BROUGHT, WORK, Deliveries
from lakehouse_tests.cluster.lake import KINDS
from lakehouse_tests.cluster.spark_cluster import SparkCluster, on_account
from lakehouse_tests.processes import engine_of_process, start, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.soak]
RESTLESS = {
    "spark.dynamicAllocation.executorIdleTimeout": "5s",
    "spark.dynamicAllocation.shuffleTracking.timeout": "5s",
}
"""Executors go after seconds without work, also where they have shuffled rows."""


def write_in_pauses() -> dict[str, Any]:
    """Bring two deliveries; of the second, all work begins once all executors have left."""
    engine, page = engine_of_process(), Settings.from_env().cluster.master_page
    deliveries = Deliveries(engine, "restless")
    deliveries.bring_first()
    application = engine.spark.conf.get("spark.app.id")
    pauses: list[str] = []

    def have_left() -> bool:
        with urllib.request.urlopen(f"{page}/json/", timeout=30) as answer:
            running = json.load(answer)["activeapps"]
        return [one["cores"] for one in running if one["id"] == application] == [0]

    for name, place in WORK.items():
        _pause_before(*place, name, pauses, have_left)
    brought = deliveries.bring_second()
    return {**brought, "pauses": pauses, "application": application}


def _pause_before(owner: Any, function: str, name: str, pauses: list[str], over: Any) -> None:
    """Let the first call of a function wait until something is so."""
    real = getattr(owner, function)

    def pausing(*given: Any, **named: Any) -> Any:
        if name not in pauses:
            wait_for(over, "the leaving of all executors", 300)
            pauses.append(name)
        return real(*given, **named)

    setattr(owner, function, pausing)


@contextmanager
def restless_spark(
    cluster: SparkCluster, settings: Settings, kind: str
) -> Iterator[dict[str, str]]:
    """What a process is told whose executors leave soon."""
    if kind == "classic":
        given = " ".join(f"{name}={value}" for name, value in RESTLESS.items())
        two = {"LAKEHOUSE_EXECUTORS": "2", "LAKEHOUSE_SPARK_CONF": given}
        yield cluster.client_environment | two
        return
    of_server = replace(settings.cluster, executors=2, configuration=tuple(RESTLESS.items()))
    with connect_server(cluster, replace(settings, cluster=of_server)) as server:
        page = {"LAKEHOUSE_SPARK_MASTER_PAGE": cluster.web_url}
        yield {**server.client_environment, **page}


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_whose_executors_left_in_the_middle_goes_on_with_others(
    cluster: SparkCluster, aws_settings: Settings, kind: str
) -> None:
    with restless_spark(cluster, aws_settings, kind) as spark:
        env = on_account(aws_settings) | spark
        child = start(aws_settings.home, write_in_pauses, env=env)
        try:
            done = child.result()
        finally:
            child.kill()

    application = done.pop("application")
    assert done == {**BROUGHT, "pauses": [*WORK]}
    executors = {
        folder.name
        for worker in cluster.workers
        for folder in worker.folder.glob(f"work/{application}/*")
    }
    # Each time that all had left, at least one came.
    assert len(executors) > len(WORK)
