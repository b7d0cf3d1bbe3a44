"""Functions that Spark runs as Python find the modules of the project, wherever a command runs."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.scaffolding.begin_project import begin_project
from lakehouse.settings import Settings
from lakehouse.spark import spark_server
from lakehouse_tests.cli.commands import LAKEHOUSE
from lakehouse_tests.processes import start_command

pytestmark = pytest.mark.e2e
ASSETS = """
from lakehouse.ingestion.feed_asset import feed_asset
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.tables.feed import Feed, bronze_table
from lakehouse.tables.table import Column, IcebergTable, Overwrite
from louder import louder

FEED = Feed("words", ["word"], table="bronze.words")
RAW = bronze_table(FEED, "Words as they came.")
WORDS = IcebergTable(
    "silver.words", "Words, aloud.", [Column("aloud", "string")], write=Overwrite()
)


def twice(text):
    return louder(text) * 2


@feed_asset(FEED, RAW)
def raw_words(delivered):
    return delivered


@iceberg_asset(WORDS, inputs={"raw": RAW})
def words(raw):
    from pyspark.sql.functions import udf

    return raw.select(udf(twice)("word").alias("aloud"))
"""


def begin_words_project(folder: Path) -> Path:
    """Make a project whose function is in a module beside its package."""
    root = folder / "loud_shop"
    begin_project(root, None, "0.1.0")
    (root / "loud_shop" / "assets" / "words.py").write_text(ASSETS)
    (root / "louder.py").write_text("def louder(text):\n    return text.upper()\n")
    return root


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a folder below it."""
    root = begin_words_project(tmp_path)
    (root / "sub").mkdir()
    return root


@contextmanager
def warm_server(settings: Settings) -> Iterator[None]:
    """The server that `lakehouse dev` keeps for a home."""
    child: subprocess.Popen[bytes] | None = None
    try:
        child, server = spark_server.start(settings)
        spark_server.wait_for(settings, child, server)
        yield
    finally:
        if child:
            child.kill()
            child.wait()


def ingest(project: Path, settings: Settings) -> list[str]:
    """Ingest a word in a folder of the project, and return what the table has."""
    inbox = settings.home / "inbox" / "words"
    inbox.mkdir(parents=True)
    (inbox / "words.csv").write_text("word\nhey\n")
    ran = start_command([LAKEHOUSE, "ingest"], settings.home, cwd=project / "sub")
    assert ran.status() == 0, ran.said
    rows = Catalog.of(settings).load("silver.words").scan().to_arrow().to_pylist()
    return [row["aloud"] for row in rows]


def test_a_command_in_a_folder_of_the_project(project: Path, settings: Settings) -> None:
    assert ingest(project, settings) == ["HEYHEY"]


def test_a_server_that_was_started_elsewhere(project, settings, monkeypatch):
    of_project = replace(settings, project_root=project, spark_memory="1g")
    monkeypatch.setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", "")
    with warm_server(of_project):
        assert ingest(project, settings) == ["HEYHEY"]
