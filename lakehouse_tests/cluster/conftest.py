"""The cluster of a run: one for all tests of this folder."""

from collections.abc import Iterator

import pytest

from lakehouse.settings import Settings
from lakehouse_tests.cluster.connect_server import ConnectServer, connect_server
from lakehouse_tests.cluster.spark_cluster import SparkCluster, running_cluster
from lakehouse_tests.conftest import settings_at


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A master and two workers of one core each, which see nothing of the driver's files."""
    folder = tmp_path_factory.mktemp("cluster")
    with running_cluster(settings_at(folder / "home"), folder / "parts") as running:
        yield running


@pytest.fixture
def connect(cluster: SparkCluster, settings: Settings) -> Iterator[ConnectServer]:
    """A Spark Connect server in front of the cluster, which sees no file of its clients."""
    with connect_server(cluster, settings) as running:
        yield running
