"""Latency of one small file with `lakehouse dev`, compared with an earlier commit.

Run as `python -m benchmarks.bench_warm [--rounds N] [--files N] [--before FOLDER]`; FOLDER is a clone
at `BEFORE_COMMIT` (default: created in the cache). Both use the packages of this environment. In each
round, each tree opens `dev` on a filled home, once for fruit files and once for files of 500
transactions; files are dropped while it is idle, the first one as soon as `dev` reports that it is
open.
"""

import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date
from itertools import count
from pathlib import Path

import dagster as dg

from benchmarks.harness import (
    NOW,
    Figure,
    Measured,
    clone_at,
    conditions,
    measured_against,
    options,
    report,
    show,
)
from benchmarks.opened_dev import open_dev
from benchmarks.targets import NO_TARGET, Target, targets_of
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.run_in_process import UNFINISHED
from lakehouse.sample_data.bnpl.generator import generate
from lakehouse.settings import Settings

BEFORE_COMMIT = "c8753dc"
"""The last commit before `lakehouse new feed`."""
SILVER, GOLD = "in silver", "in all of gold"
TARGETS = targets_of("warm")
_TRANSACTIONS = 500
_LOOK_SECONDS = 0.1
_PATIENCE_SECONDS = 300
_IDLE_SECONDS = 4
_RANDOM = random.Random(1)


@dataclass(frozen=True)
class Kind:
    """Files of a feed, the tables that receive rows, and the targets as ratios to before."""

    name: str
    feed: str
    tables: dict[str, tuple[str, ...]]
    targets: dict[str, Target]


KINDS = (
    Kind(
        "fruits",
        "fruits",
        {SILVER: ("silver.fruits",)},
        {SILVER: TARGETS["fruits in silver"]},
    ),
    Kind(
        "transactions",
        "bnpl",
        {
            SILVER: ("silver.bnpl_transactions_clean",),
            GOLD: ("gold.bnpl_daily_summary", "gold.customer_profiles"),
        },
        {SILVER: TARGETS["transactions in silver"], GOLD: TARGETS["transactions in gold"]},
    ),
)


class Tree:
    """Code of a folder with its own home and files."""

    def __init__(
        self, name: str, code: Path, home: Path, files: dict[str, Iterator[Path]]
    ) -> None:
        self.name, self._code, self._files = name, code, files
        self.settings = replace(Settings.from_env(), home=home)
        self._catalog = Catalog.of(self.settings)

    @contextmanager
    def dev(self) -> Iterator[None]:
        """Run `lakehouse dev` during the block."""
        home = self.settings.home
        home.mkdir(mode=0o700, exist_ok=True)
        env = os.environ | {"LAKEHOUSE_HOME": str(home), "PYTHONPATH": str(self._code)}
        with open_dev(env, home):
            yield

    def seconds(self, kind: Kind) -> dict[str, float]:
        """Drop the next file; return the seconds until its rows are in each place."""
        every = [table for tables in kind.tables.values() for table in tables]
        before = {table: self._snapshot(table) for table in every}
        inbox = self.settings.home / "inbox" / kind.feed
        inbox.mkdir(parents=True, exist_ok=True)
        file = next(self._files[kind.name])
        shutil.copy(file, self.settings.home / file.name)
        (self.settings.home / file.name).rename(inbox / file.name)
        started_at, took = time.perf_counter(), {}
        for place, tables in kind.tables.items():
            for table in tables:
                wait(
                    lambda name=table: self._snapshot(name) != before[name], f"rows in {table}"
                )
            took[place] = time.perf_counter() - started_at
        self._wait_until_idle()
        return took

    def _snapshot(self, table: str) -> int | None:
        if not self._catalog.has(table):
            return None
        main = self._catalog.load(table).current_snapshot()
        return main.snapshot_id if main else None

    def _wait_until_idle(self) -> None:
        idle_since = time.monotonic()
        with open_instance(self.settings) as instance:
            while time.monotonic() < idle_since + _IDLE_SECONDS:
                if instance.get_runs_count(dg.RunsFilter(statuses=UNFINISHED)):
                    idle_since = time.monotonic()
                time.sleep(1)
        # At a random time of a sensor interval.
        time.sleep(_RANDOM.random() * 4)


def wait(happened: Callable[[], bool], what: str) -> None:
    """Wait for a condition."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while not happened():
        assert time.monotonic() < until, f"waited {_PATIENCE_SECONDS} s for {what}"
        time.sleep(_LOOK_SECONDS)


def fruits(folder: Path) -> Iterator[Path]:
    """Yield distinct files with one fruit each."""
    for number in count(1):
        file = folder / f"{number}.csv"
        file.write_text(f"id,fruit,berry\n{number},Fruit {number},false\n", encoding="utf-8")
        yield file


def session(tree: Tree, kind: Kind, files: int) -> tuple[dict[str, float], dict[str, float]]:
    """Run `dev` and drop files; return the seconds of the first and the medians of the rest."""
    with tree.dev():
        first = tree.seconds(kind)
        show(f"{tree.name}, {kind.name}, first file: {seconds_text(first)}")
        later = []
        for number in range(files):
            later.append(tree.seconds(kind))
            show(
                f"{tree.name}, {kind.name}, file {number + 1} of {files}: {seconds_text(later[-1])}"
            )
    places = {place: [took[place] for took in later] for place in kind.tables}
    return first, {place: statistics.median(seconds) for place, seconds in places.items()}


def seconds_text(seconds: dict[str, float]) -> str:
    """Format seconds by place."""
    return ", ".join(f"{place} after {took:.2f} s" for place, took in seconds.items())


def fill(trees: Sequence[Tree]) -> None:
    """Fill all tables before the measurement."""
    for tree in trees:
        with tree.dev():
            for kind in KINDS:
                show(
                    f"{tree.name}, filled with {kind.name}: {seconds_text(tree.seconds(kind))}"
                )


def measure(
    trees: Sequence[Tree], rounds: int, files: int
) -> tuple[dict[str, list[Measured]], list[Figure]]:
    """Compare the trees in alternating order, and the first file with later ones."""
    parts, firsts = {}, []
    before, now = trees
    for kind in KINDS:
        took = {tree.name: [] for tree in trees}
        for number in range(rounds):
            for tree in reversed(trees) if number % 2 else trees:
                took[tree.name].append(session(tree, kind, files))
        for place in kind.tables:
            medians = {name: [of[place] for _, of in all_] for name, all_ in took.items()}
            parts[f"A file of {kind.name}, {place}"] = [
                measured_against(
                    medians[before.name], before.name, NO_TARGET, medians[before.name]
                ),
                measured_against(
                    medians[before.name],
                    now.name,
                    kind.targets[place],
                    medians[now.name],
                ),
            ]
            ratios = [first[place] / median[place] for first, median in took[now.name]]
            name = f"first file of {kind.name} after dev opened, {place}, of the median"
            firsts.append(Figure(name, statistics.median(ratios), TARGETS["first file"]))
    return parts, firsts


def before_tree(settings: Settings) -> Path:
    """Return a clone at the earlier commit."""
    return clone_at(BEFORE_COMMIT, settings.cache_dir / "bench" / "warm-before")


def main(rounds: int, files: int, before: Path | None) -> None:
    """Measure both; exit with 1 if a limit is exceeded."""
    environment = conditions()
    settings = Settings.from_env()
    folders = {f"before ({BEFORE_COMMIT})": before or before_tree(settings), "now": NOW}
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        days = rounds * (files + 1) + 1
        made = generate(folder / "transactions", date(2026, 1, 1), days, _TRANSACTIONS, seed=1)
        (folder / "fruits").mkdir()
        trees = [
            Tree(
                title,
                code,
                folder / f"home-{number}",
                {"fruits": fruits(folder / "fruits"), "transactions": iter(made.files)},
            )
            for number, (title, code) in enumerate(folders.items())
        ]
        fill(trees)
        parts, firsts = measure(trees, rounds, files)
    sys.exit(0 if report("warm", environment, parts, {"The first file": firsts}) else 1)


if __name__ == "__main__":
    parser = options(__doc__, rounds=3)
    parser.add_argument("--files", type=int, default=5, help="after the first; by default 5")
    parser.add_argument("--before", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    with suppress(KeyboardInterrupt):
        main(arguments.rounds, arguments.files, arguments.before)
