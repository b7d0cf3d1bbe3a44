"""An unreachable Spark is reported in seconds, by setting and without its token."""

import socket
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from lakehouse.errors import SetupError
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.spark import spark_address
from lakehouse.spark.spark_address import require_connect, require_master
from lakehouse.spark.spark_session import open_session

pytestmark = pytest.mark.unit

SECONDS = 60


@pytest.fixture
def listening() -> Iterator[int]:
    """A port where something listens and says nothing."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]


def test_a_remote_to_nowhere_is_named_in_seconds_and_its_token_is_not(settings):
    remote = replace(settings, spark_remote="sc://localhost:1/;token=S3cret")
    began_at = time.monotonic()
    with pytest.raises(
        SetupError, match="SPARK_REMOTE is sc://localhost:1, which does not answer"
    ) as raised:
        open_session(remote, Catalog.of(settings))
    assert time.monotonic() - began_at < SECONDS
    assert "unset it" in raised.value.next_step
    assert "S3cret" not in str(raised.value)


def test_a_remote_that_is_no_spark_is_told_from_one_that_is_gone(listening, monkeypatch):
    monkeypatch.setattr(spark_address, "HANDSHAKE_SECONDS", 0.5)
    with pytest.raises(SetupError, match="accepts connections"):
        require_connect(f"sc://127.0.0.1:{listening}")


@pytest.mark.parametrize(
    "master",
    ["spark://127.0.0.1:1", "spark://127.0.0.1:1,localhost:1", "k8s://https://127.0.0.1:1"],
)
def test_a_master_to_nowhere_is_named(master: str) -> None:
    with pytest.raises(
        SetupError,
        match=r"LAKEHOUSE_SPARK_MASTER is .+, which does not answer: Connection refused",
    ):
        require_master(master)


def test_one_master_of_several_is_enough(listening: int) -> None:
    require_master(f"spark://127.0.0.1:1,127.0.0.1:{listening}")
    require_master("local[*]")
