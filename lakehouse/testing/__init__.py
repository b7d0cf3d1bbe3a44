"""Fixtures of pytest for those who test the functions of their tables: rows in, rows out, and
the refused rows with their reasons.

A project names this module in its `conftest.py`:

    pytest_plugins = ["lakehouse.testing"]

It is imported by nothing else, since pytest is not installed where tables are only computed.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.settings import Settings
from lakehouse.tables.table import IcebergTable
from lakehouse.testing.try_table import TryTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakehouse.project import Project


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "SparkSession":
    """The one session of the tests, with a temporary folder for a home.

    A project that has a fixture of this name keeps its own.
    """
    from lakehouse.runtime.spark import open_session

    settings = _settings(tmp_path_factory)
    return open_session(settings, Catalog.of(settings))


@pytest.fixture(scope="session")
def declared_tables(pytestconfig: pytest.Config) -> Mapping[str, IcebergTable]:
    """The tables by name that the project of the tests declares; they say of what types the
    rows of inputs are.

    A test of tables that the project does not declare has a fixture of this name.
    """
    return _project(pytestconfig).tables


@pytest.fixture
def try_table(
    spark: "SparkSession",
    declared_tables: Mapping[str, IcebergTable],
    pytestconfig: pytest.Config,
    tmp_path_factory: pytest.TempPathFactory,
) -> TryTable:
    """What computes a table from rows of its inputs: `try_table(asset, rows)`."""
    settings = _settings(tmp_path_factory)
    # Nothing asks the catalog, and nothing is locked.
    engine = Engine(
        Catalog.of(settings), lambda: spark, settings.lock_dir, masking_key=b"testing"
    )
    return TryTable(engine, declared_tables, partial(_project, pytestconfig))


def _project(config: pytest.Config) -> "Project":
    """Return the project that the tests lie in, wherever pytest was started."""
    from lakehouse.project import load_project

    return load_project(Settings.from_env(folder=config.rootpath))


def _settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return replace(
        Settings.from_env(),
        home=tmp_path_factory.getbasetemp() / "lakehouse",
        deployment="local",
        spark_remote=None,
    )
