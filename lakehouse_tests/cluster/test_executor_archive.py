"""Workers without Python packages read files with those of an archive."""

from pathlib import Path

import pytest

from lakehouse.spark.executor_archive import python_here, write_archive
from lakehouse.storage.s3 import open_bucket
from lakehouse_tests.cluster.connect_server import connect_server, printed_configuration
from lakehouse_tests.cluster.spark_cluster import running_cluster
from lakehouse_tests.cluster.test_executor_reading import BARE_PYTHON, read_and_check
from lakehouse_tests.conftest import settings_at

pytestmark = [pytest.mark.e2e, pytest.mark.soak]

_KEY = "env/executors.tar.gz"


@pytest.fixture(scope="module")
def bare_cluster(s3a_jars, tmp_path_factory):
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
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `lakehouse pack-python` makes."""
    folder = tmp_path_factory.mktemp("archive")
    file = folder / "executors.tar.gz"
    write_archive(settings_at(folder / "home"), str(file))
    return file


def test_executors_read_by_the_archive(bare_cluster, archive, aws_settings, home):
    env = bare_cluster.client_environment | {"LAKEHOUSE_EXECUTOR_ARCHIVE": str(archive)}

    assert read_and_check(aws_settings, home, env, driver_reads=False) == []


def test_a_client_of_a_server_sends_it(bare_cluster, archive, aws_settings, home):
    store = open_bucket(aws_settings)
    store.put(archive, _KEY)
    given = printed_configuration(aws_settings)
    with connect_server(bare_cluster, aws_settings, given) as server:
        env = server.client_environment | {"LAKEHOUSE_EXECUTOR_ARCHIVE": store.uri(_KEY)}
        assert read_and_check(aws_settings, home, env, driver_reads=False) == []
