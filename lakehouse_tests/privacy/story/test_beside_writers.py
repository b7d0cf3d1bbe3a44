"""People are erased while others write the same tables, deliver files and keep the tables: nobody
else loses a row, and in the end nothing of them is left.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from threading import Event, Thread

import pyarrow as pa
import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.commit_retries import Failure, classify
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.upkeep import expire_snapshots
from lakehouse_tests.conftest import settings_at
from lakehouse_tests.examples import repeated
from lakehouse_tests.privacy.an_erasure import ANNA, HERS, NAMED, Home, expire_without_spark
from lakehouse_tests.privacy.small_lakehouse import ORDERS
from lakehouse_tests.processes import wait_for

_FIRST = 6_000_000_000
_REST_SECONDS = 0.2


@contextmanager
def going_on(*works: Callable[[], None]) -> Iterator[None]:
    """Let threads do some works again and again for the time of a block."""
    stop, errors = Event(), []

    def work_on(work: Callable[[], None]) -> None:
        try:
            while not stop.is_set():
                work()
                # Who only tries a lock has to find it free now and then.
                time.sleep(_REST_SECONDS)
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=work_on, args=[work], daemon=True) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert errors == []


class Writer:
    """Adds orders of people who are not erased."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._numbers = engine, count(_FIRST)
        self.written: list[int] = []

    def __call__(self) -> None:
        number = next(self._numbers)
        while not self._add(number):
            time.sleep(_REST_SECONDS)
        self.written.append(number)

    def _add(self, number: int) -> bool:
        row = {"customer_id": number, "email": f"{number}@example.org", "amount": 1.0}
        with table_lock(self._engine, ORDERS.name):
            loaded = self._engine.catalog.load(ORDERS.name)
            try:
                loaded.append(pa.Table.from_pylist([row], loaded.schema().as_arrow()))
            except Exception as error:
                # Of another host, another commit may come first.
                assert classify(error) is not Failure.OTHER, error
                return False
        return True


def grow_old(home: Path) -> None:
    """Let two days pass for all files of tables."""
    moment = time.time() - 2 * 24 * 3600
    for file in (home / "warehouse").rglob("*"):
        os.utime(file, (moment, moment))


@pytest.mark.long
@pytest.mark.parametrize("hosts", repeated(["two hosts", "one host"], tried=["two hosts"]))
def test_writers_and_upkeep_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hosts: str
) -> None:
    monkeypatch.setattr(expire_snapshots, "_call_procedure", expire_without_spark)
    home = Home(settings_at(tmp_path / "home"))
    home.fill()
    home.lose_a_write()
    before = home.rows(ORDERS)
    locks = tmp_path / "locks" if hosts == "two hosts" else home.settings.lock_dir
    writer = Writer(replace(home.engine, lock_dir=locks))

    def keep_up() -> None:
        moment = datetime.now(UTC)
        expire_snapshots.expire_snapshots(home.engine, ORDERS.name, older_than=moment, keep=3)

    with going_on(writer, keep_up):
        wait_for(lambda: len(writer.written) > 2, "the first writes")
        states = [home.erase(*NAMED).request.state, home.erase().request.state]

    assert states == ["pending_physical"] * 2
    grow_old(home.settings.home)
    erasure = home.erase()
    assert erasure.request.state == "verified", erasure.proof and erasure.proof.as_text()
    assert home.files_with(ANNA, HERS) == []
    others = [row for row in before if row[0] != int(HERS)]
    written = [(number, f"{number}@example.org", 1.0) for number in writer.written]
    assert home.rows(ORDERS) == sorted([*others, *written])
