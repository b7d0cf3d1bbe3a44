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


@pytest.mark.parametrize(
    ("remote", "server", "expected"),
    [
        (None, None, "Starting Spark"),
        ("sc://spark:15002", None, "Connecting to Spark"),
        (None, SparkServer(15002, "T0ken", Process.current()), "Connecting to Spark"),
    ],
)
def test_a_running_spark_is_connected_to(settings, monkeypatch, remote, server, expected):
    monkeypatch.setattr(spark_server, "find", lambda _: server)
    assert said(replace(settings, spark_remote=remote)) == [expected]
