"""Latency from a landed file to table rows, and the cost of many small files.

Run as `python -m benchmarks.bench_feeds [--rounds DROPS]`: time from the drop into the inbox of a
warm, idle `lakehouse dev` (folder or emulated S3 bucket) to the requested run and to visible rows;
then 200 small files in one run against one run each.
"""

import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import dagster as dg
import requests

from benchmarks.emulated_account import environment_of, prepared_account
from benchmarks.harness import (
    Figure,
    Measured,
    conditions,
    measured_against,
    options,
    report,
    show,
)
from benchmarks.opened_dev import open_dev
from benchmarks.targets import NO_TARGET, targets_of
from lakehouse.assets.bronze.raw_fruits import FEED
from lakehouse.assets.silver.fruits import TABLE as FRUITS
from lakehouse.definitions import TABLES, definitions
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.ingestion.feed_runs import FEED_TAG, ingest
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.settings import Settings
from lakehouse.storage.stores import open_store

TARGETS = targets_of("feeds")
FILES = 200
ONE_BY_ONE = 20
S3_PORT = 3178
_LOOK_SECONDS = 0.05
_PATIENCE_SECONDS = 120
_RANDOM = random.Random(1)


class Drops:
    """Distinct files with one fruit each."""

    def __init__(self, settings: Settings) -> None:
        settings.home.mkdir(parents=True, exist_ok=True)
        self._store, self._folder = open_store(settings), settings.home
        self._numbers = count(1)

    def drop(self, files: int = 1) -> None:
        """Write files atomically."""
        for number in (next(self._numbers) for _ in range(files)):
            path = self._folder / f"{number}.csv"
            path.write_text(
                f"id,fruit,berry\n{number},Fruit {number},false\n", encoding="utf-8"
            )
            self._store.put(path, f"{FEED.inbox}{path.name}")
            path.unlink()


@contextlib.contextmanager
def bucket(settings: Settings) -> Iterator[Settings]:
    """Start an S3 and Glue emulator with a bucket; yield the settings for it."""
    address = f"http://127.0.0.1:{S3_PORT}"
    environment = environment_of(address)
    os.environ.update(environment)
    moto = str(Path(sys.executable).with_name("moto_server"))
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        [moto, "-H", "127.0.0.1", "-p", str(S3_PORT)], stdout=quiet, stderr=quiet
    )
    try:
        wait(lambda: _answers(f"{address}/moto-api/"))
        yield prepared_account(settings.home)
    finally:
        process.terminate()
        process.wait()
        for name in environment:
            del os.environ[name]


def wait(happened: Callable[[], bool]) -> float:
    """Wait for a condition and return the seconds."""
    started_at = time.perf_counter()
    while not happened():
        assert time.perf_counter() - started_at < _PATIENCE_SECONDS, "it did not happen"
        time.sleep(_LOOK_SECONDS)
    return time.perf_counter() - started_at


def _answers(address: str) -> bool:
    try:
        return requests.get(address, timeout=5).ok
    except requests.ConnectionError:
        return False


def measure_drops(settings: Settings, drops: int) -> list[Measured]:
    """Drop files one by one into an idle lakehouse, at random times of the sensor interval."""
    catalog, files = Catalog.of(settings), Drops(settings)
    detected, queryable = [], []
    env = os.environ | {"LAKEHOUSE_HOME": str(settings.home)}
    with open_dev(env, settings.home), open_instance(settings) as instance:
        for number in range(1, drops + 2):
            before = instance.get_runs_count(dg.RunsFilter(tags={FEED_TAG: FEED.name}))
            files.drop()
            seen = wait(
                lambda known=before: (
                    instance.get_runs_count(dg.RunsFilter(tags={FEED_TAG: FEED.name})) > known
                )
            )
            rest = wait(lambda rows=number: _rows(catalog) == rows)
            wait(
                lambda: (
                    not instance.get_runs_count(
                        dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])
                    )
                )
            )
            time.sleep(3 + _RANDOM.random() * 5)
            detected.append(seen)
            queryable.append(seen + rest)
            show(
                f"drop {number} of {drops + 1}: requested after {seen:.2f} s, rows {rest:.2f} s later"
            )
    # The first drop is the warm-up.
    rows = {
        "from the drop to the requested run": detected[1:],
        "from the drop to its rows": queryable[1:],
    }
    return [
        measured_against(detected[1:], name, NO_TARGET, seconds)
        for name, seconds in rows.items()
    ]


def _rows(catalog: Catalog) -> int:
    main = catalog.load(FRUITS.name).current_snapshot() if catalog.has(FRUITS.name) else None
    return int(main.summary["total-records"]) if main and main.summary else 0


def measure_many(settings: Settings) -> Figure:
    """Compare many files in one run with one run per file, in one warm process."""
    files = Drops(settings)

    def seconds(how_many: int) -> float:
        files.drop(how_many)
        time.sleep(1)
        started_at = time.perf_counter()
        assert ingest(definitions, TABLES, settings, FEED).success
        return time.perf_counter() - started_at

    for _ in range(3):
        seconds(1)
    one_by_one = [seconds(1) for _ in range(ONE_BY_ONE)]
    show(f"{ONE_BY_ONE} files with a run for each: {sum(one_by_one):.2f} s")
    at_once = seconds(FILES)
    show(f"{FILES} files in one run: {at_once:.2f} s")
    each = sum(one_by_one) / ONE_BY_ONE
    return Figure(
        f"time for a file, {FILES} in one run, of that with a run for each",
        at_once / FILES / each,
        TARGETS["file in a run of many"],
    )


def main(drops: int) -> None:
    """Run all parts; exit with 1 if a limit is exceeded."""
    environment = conditions()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        settings = Settings.from_env()
        landed = {
            "A file lands in a folder": measure_drops(
                replace(settings, home=Path(name) / "live"), drops
            )
        }
        with bucket(replace(settings, home=Path(name) / "bucket")) as on_s3:
            landed["A file lands in a bucket"] = measure_drops(on_s3, drops)
        many = measure_many(replace(settings, home=Path(name) / "many"))
    sys.exit(0 if report("feeds", environment, landed, {"Many small files": [many]}) else 1)


if __name__ == "__main__":
    main(options(__doc__, rounds=20).parse_args().rounds)
