"""Pytest fixtures for unit tests of table functions: rows in, rows and quarantined rows out.

Enable them in the project's `conftest.py`:

    pytest_plugins = ["lakehouse.testing"]

No other module imports this package, since production environments do not have pytest.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.settings import Settings
from lakehouse.tables.table import IcebergTable
from lakehouse.testing.table_fixture import TryTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakehouse.project import Project


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "SparkSession":
    """The Spark session of the tests, with a temporary home.

    A project can override this fixture.
    """
    from lakehouse.spark.spark_session import open_session

    settings = _settings(tmp_path_factory)
    return open_session(settings, Catalog.of(settings))


@pytest.fixture(scope="session")
def declared_tables(pytestconfig: pytest.Config) -> Mapping[str, IcebergTable]:
    """The declared tables of the tests' project by name, which define the types of input rows.

    Override this fixture to test tables that the project does not declare.
    """
    return _project(pytestconfig).tables


@pytest.fixture
def try_table(
    spark: "SparkSession",
    declared_tables: Mapping[str, IcebergTable],
    pytestconfig: pytest.Config,
    tmp_path_factory: pytest.TempPathFactory,
) -> TryTable:
    """A function that computes a table from rows of its inputs: `try_table(asset, rows)`."""
    settings = _settings(tmp_path_factory)
    # The catalog is not accessed and no lock is taken.
    engine = Engine(
        Catalog.of(settings), lambda: spark, settings.lock_dir, masking_key=b"testing"
    )
    return TryTable(engine, declared_tables, partial(_project, pytestconfig))


def _project(config: pytest.Config) -> "Project":
    """Return the project that contains the tests, regardless of the working directory."""
    from lakehouse.project import load_project

    return load_project(Settings.from_env(folder=config.rootpath))


def _settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return replace(
        Settings.from_env(),
        home=tmp_path_factory.getbasetemp() / "lakehouse",
        deployment="local",
        spark_remote=None,
    )
