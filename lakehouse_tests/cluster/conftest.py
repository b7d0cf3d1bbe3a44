"""The cluster of a run: one for all tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakehouse.cli.sample_files import DAYS, FIRST_DAY
from lakehouse.runtime import jars
from lakehouse.runtime.connect_server import server_configuration
from lakehouse.sample_data.bnpl.generate import generate
from lakehouse.sample_data.bnpl.truth import Truth
from lakehouse.settings import Settings
from lakehouse_tests.cluster.connect_server import ConnectServer, connect_server
from lakehouse_tests.cluster.spark_cluster import SparkCluster, running_cluster
from lakehouse_tests.conftest import settings_at


@pytest.fixture(scope="session")
def cluster(s3a_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A master and two workers of one core each, which see nothing of the driver's files."""
    folder = tmp_path_factory.mktemp("cluster")
    with running_cluster(settings_at(folder / "home"), folder / "parts") as running:
        yield running


@pytest.fixture
def cluster_without_workers(
    s3a_jars: None, settings: Settings, tmp_path: Path
) -> Iterator[SparkCluster]:
    """A master alone."""
    with running_cluster(settings, tmp_path / "parts", workers=0) as running:
        yield running


@pytest.fixture
def connect(cluster: SparkCluster, settings: Settings) -> Iterator[ConnectServer]:
    """A Spark Connect server in front of the cluster, which sees no file of its clients."""
    with connect_server(cluster, settings) as running:
        yield running


@pytest.fixture
def aws_connect(cluster: SparkCluster, aws_settings: Settings) -> Iterator[ConnectServer]:
    """A server in front of the cluster with what `lakehouse connect-conf` prints, and no more."""
    given = server_configuration(aws_settings, str(jars.jar_dir(aws_settings).expanduser()))
    with connect_server(cluster, aws_settings, given) as running:
        yield running


@pytest.fixture
def truth(tmp_path: Path) -> Truth:
    """What the tables must hold of the demo's transactions."""
    folder = tmp_path / "bnpl"
    return generate(folder, FIRST_DAY, days=DAYS, rows_per_day=500, seed=1).truth
