"""What a warm-up of Spark leaves in a home: nothing, however it ends."""

from collections.abc import Iterator

import pytest

from lakehouse.cli.dev_processes import warm_up
from lakehouse.settings import Settings
from lakehouse.spark.processes import Process
from lakehouse.spark.spark_server import SparkServer

SERVER = SparkServer(1, "T0ken", Process("here", 1, 0.0))


@pytest.fixture
def written(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Settings]]:
    """Where the tables of a warm-up were written, on a home whose server answers."""
    homes: list[Settings] = []

    def write_warm_up_tables(scratch: Settings) -> None:
        scratch.make_home()
        (scratch.home / "catalog.db").touch()
        homes.append(scratch)

    monkeypatch.setenv("LAKEHOUSE_HOME", str(settings.home))
    monkeypatch.setattr(warm_up, "find", lambda _: SERVER)
    monkeypatch.setattr(warm_up, "write_warm_up_tables", write_warm_up_tables)
    monkeypatch.setattr(warm_up.os, "nice", lambda _: 0)
    monkeypatch.setattr(warm_up.signal, "signal", lambda *_: None)
    settings.make_home()
    yield homes


def test_it_writes_to_a_catalog_that_nobody_sees_and_that_is_gone_afterwards(settings, written):
    warm_up.main()
    (scratch,) = written
    assert scratch.spark_remote == SERVER.remote
    assert scratch.home.parent == settings.home / "tmp"
    assert not [path for path in settings.home.rglob("*") if path.is_file()]
    assert not scratch.home.exists()


def test_one_that_is_stopped_in_the_middle_leaves_nothing_too(settings, written, monkeypatch):
    write = warm_up.write_warm_up_tables

    def stopped(scratch: Settings) -> None:
        write(scratch)
        raise KeyboardInterrupt

    monkeypatch.setattr(warm_up, "write_warm_up_tables", stopped)
    with pytest.raises(KeyboardInterrupt):
        warm_up.main()
    assert not written[0].home.exists()
