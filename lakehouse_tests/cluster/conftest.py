"""The cluster of a run: one for all tests of this folder but those that kill its workers."""

from pathlib import Path
from uuid import uuid4

import pytest

from lakehouse.cli.project.demo import DAYS, FIRST_DAY
from lakehouse.sample_data.bnpl.generator import generate
from lakehouse.sample_data.bnpl.truth import Truth
from lakehouse_tests.cluster.spark_cluster import running_cluster
from lakehouse_tests.conftest import settings_at


@pytest.fixture(scope="session")
def gates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The one folder of the tests that workers see, where tasks wait at gates."""
    return tmp_path_factory.mktemp("gates")


@pytest.fixture
def gate(gates: Path) -> Path:
    """A gate of the test's own, which is not there yet."""
    return gates / uuid4().hex


@pytest.fixture(scope="session")
def cluster(s3a_jars, gates, tmp_path_factory):
    """A master and two workers of one core each, which see nothing of the driver's files."""
    folder = tmp_path_factory.mktemp("cluster")
    settings = settings_at(folder / "home")
    with running_cluster(settings, folder / "parts", kept=[gates]) as running:
        yield running


@pytest.fixture(scope="module")
def mortal_cluster(s3a_jars, gates, tmp_path_factory):
    """A cluster of a module's own, whose workers are killed."""
    folder = tmp_path_factory.mktemp("mortal")
    settings = settings_at(folder / "home")
    with running_cluster(settings, folder / "parts", kept=[gates]) as running:
        yield running


@pytest.fixture
def truth(tmp_path: Path) -> Truth:
    """What the tables must hold of the demo's transactions."""
    folder = tmp_path / "bnpl"
    return generate(folder, FIRST_DAY, days=DAYS, rows_per_day=500, seed=1).truth
