"""What a warm-up of Spark leaves in a home: nothing, however it ends."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from lakehouse.cli.dev_processes import warm_up
from lakehouse.runtime.processes import Process
from lakehouse.runtime.spark_server import SparkServer
from lakehouse.settings import Settings

SERVER = SparkServer(1, "T0ken", Process("here", 1, 0.0))


@pytest.fixture
def written(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Settings]]:
    """Where the tables of a warm-up were written, on a home whose server answers."""
    homes: list[Settings] = []

    def write_warm_up_tables(scratch: Settings, make_way: Callable[[], None]) -> None:
        for _ in range(2):
            make_way()
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


def test_it_writes_to_a_catalog_that_nobody_sees_and_that_is_gone_afterwards(
    settings: Settings, written: list[Settings]
) -> None:
    warm_up.main()
    (scratch,) = written
    assert scratch.spark_remote == SERVER.remote
    assert scratch.home.parent == settings.home / "tmp"
    assert not [path for path in settings.home.rglob("*") if path.is_file()]
    assert not scratch.home.exists()


def test_one_that_is_stopped_in_the_middle_leaves_nothing_too(
    settings: Settings, written: list[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = warm_up.write_warm_up_tables

    def stopped(scratch: Settings, make_way: Callable[[], None]) -> None:
        write(scratch, make_way)
        raise KeyboardInterrupt

    monkeypatch.setattr(warm_up, "write_warm_up_tables", stopped)
    with pytest.raises(KeyboardInterrupt):
        warm_up.main()
    assert not written[0].home.exists()


def test_without_a_server_nothing_is_done(
    written: list[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_up, "find", lambda _: None)
    monkeypatch.setattr(warm_up, "START_SECONDS", 0.5)
    warm_up.main()
    assert not written


def test_it_waits_for_a_server_that_starts(
    written: list[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([None, None, SERVER])
    monkeypatch.setattr(warm_up, "find", lambda _: next(answers))
    warm_up.main()
    assert written


@dataclass
class Clock:
    """Time that passes where somebody sleeps, and when others are connected."""

    connected: Callable[[float], bool]
    now: float = 1_000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def seconds_of(self, monkeypatch: pytest.MonkeyPatch) -> float:
        """Return how long a warm-up waits."""
        began = self.now
        others = property(lambda _: self.connected(self.now - began))
        monkeypatch.setattr(SparkServer, "has_other_clients", others)
        monkeypatch.setattr(warm_up, "time", self)
        warm_up.main()
        return self.now - began


@pytest.mark.parametrize(
    ("connected", "waits"),
    [
        (lambda _: False, 0),
        (lambda seconds: seconds < 3, 5),
        (lambda seconds: seconds < 3 or 4 < seconds < 6, 8),
        (lambda _: True, 10),
    ],
    ids=["nobody", "a run", "a run after another", "somebody for good"],
)
def test_whoever_asks_spark_goes_first(
    written: list[Settings],
    monkeypatch: pytest.MonkeyPatch,
    connected: Callable[[float], bool],
    waits: float,
) -> None:
    assert Clock(connected).seconds_of(monkeypatch) == pytest.approx(waits, abs=0.5)
    assert written
