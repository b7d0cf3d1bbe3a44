"""What is said while Spark starts, or is connected to; with no Spark at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from lakehouse.cli.call_context import State
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.settings import Settings
from lakehouse.spark import spark_server
from lakehouse.spark.processes import Process
from lakehouse.spark.spark_server import SparkServer

pytestmark = pytest.mark.unit


def said(settings: Settings) -> list[str]:
    """What a call with these settings says that goes on."""
    lines: list[str] = []

    @contextmanager
    def progress(what: str) -> Iterator[None]:
        lines.append(what)
        yield

    state = State(progress=progress)  # type: ignore[arg-type]  # it is called, and no more
    state.settings = settings
    state.engine = Engine(Catalog.of(settings), lambda: None, settings.lock_dir, b"")
    state.start_spark()
    return lines


def test_spark_is_started_where_there_is_none(settings: Settings) -> None:
    assert said(settings) == ["Starting Spark"]


def test_a_spark_that_is_named_is_connected_to(settings: Settings) -> None:
    assert said(replace(settings, spark_remote="sc://spark:15002")) == ["Connecting to Spark"]


def test_beside_lakehouse_dev_its_spark_is_connected_to(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm = SparkServer(15002, "T0ken", Process.current())
    monkeypatch.setattr(spark_server, "find", lambda _: warm)
    assert said(settings) == ["Connecting to Spark"]
