"""Workers whose Python has no packages read delivered files by those of an archive, while they see
no file of the driver's.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lakehouse.settings import Settings
from lakehouse.spark import jars
from lakehouse.spark.connect_server import server_configuration
from lakehouse.spark.executor_archive import python_here, write_archive
from lakehouse.storage.s3 import open_bucket
from lakehouse_tests.cluster.connect_server import connect_server
from lakehouse_tests.cluster.spark_cluster import SparkCluster, running_cluster
from lakehouse_tests.cluster.test_executor_reading import BARE_PYTHON, read_and_check
from lakehouse_tests.conftest import settings_at

pytestmark = [pytest.mark.e2e, pytest.mark.soak]

_KEY = "env/executors.tar.gz"


@dataclass(frozen=True)
class Archive:
    """An archive as a file, and what a process is told that uses it."""

    file: Path

    @property
    def env(self) -> dict[str, str]:
        """What names the file."""
        return {"LAKEHOUSE_EXECUTOR_ARCHIVE": str(self.file)}

    def in_bucket(self, settings: Settings) -> dict[str, str]:
        """Put it into the bucket; return what names it there."""
        store = open_bucket(settings)
        store.put(self.file, _KEY)
        return {"LAKEHOUSE_EXECUTOR_ARCHIVE": store.uri(_KEY)}


@pytest.fixture(scope="module")
def bare_cluster(
    s3a_jars: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkCluster]:
    """A cluster whose workers find a Python without packages on their PATH, and no other first."""
    folder = tmp_path_factory.mktemp("bare")
    programs = folder / "bin"
    programs.mkdir()
    (programs / f"python{python_here()}").symlink_to(BARE_PYTHON)
    with running_cluster(
        settings_at(folder / "home"),
        folder / "parts",
        kept=[programs],
        search_path=f"{programs}:/usr/bin:/bin",
    ) as running:
        yield running


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """What `lakehouse pack-python` makes."""
    folder = tmp_path_factory.mktemp("archive")
    file = folder / "executors.tar.gz"
    write_archive(settings_at(folder / "home"), str(file))
    return Archive(file)


def test_their_python_alone_cannot_read(bare_cluster, aws_settings, home):
    python = {"LAKEHOUSE_EXECUTOR_PYTHON": f"python{python_here()}"}
    env = bare_cluster.client_environment | python

    (warning,) = read_and_check(aws_settings, home, env, driver_reads=True)

    assert "No module named 'pyarrow'" in warning


def test_executors_read_by_the_archive(bare_cluster, archive, aws_settings, home):
    env = bare_cluster.client_environment | archive.env

    assert read_and_check(aws_settings, home, env, driver_reads=False) == []


def test_a_client_of_a_server_sends_it(bare_cluster, archive, aws_settings, home):
    told = archive.in_bucket(aws_settings)
    given = server_configuration(aws_settings, str(jars.jar_dir(aws_settings).expanduser()))
    with connect_server(bare_cluster, aws_settings, given) as server:
        env = server.client_environment | told
        assert read_and_check(aws_settings, home, env, driver_reads=False) == []
