"""Jars that the user's own arguments have Spark fetch come to the executors beside ours."""

import re
from pathlib import Path

import pytest

from lakehouse_tests.cluster.lake import lake_on
from lakehouse_tests.jar_repository import JAR, served_repository

pytestmark = [pytest.mark.e2e, pytest.mark.soak]


def test_executors_get_the_jars_of_packages(cluster, aws_settings, tmp_path: Path) -> None:
    with (
        served_repository(tmp_path / "repository") as (_, address),
        lake_on(cluster, aws_settings, "classic") as lake,
    ):
        arguments = f"--packages {JAR.coordinate} --repositories {address} pyspark-shell"
        counted = lake.run(
            "sql",
            "SELECT count(DISTINCT id % 7) AS n FROM range(100)",
            PYSPARK_SUBMIT_ARGS=arguments,
        )

    assert "7" in counted
    fetched = "".join(worker.executors_said() for worker in cluster.workers)
    assert re.search(r"/jars/\S*small-1\.0\.jar", fetched)
    assert "iceberg-spark-runtime" in fetched
