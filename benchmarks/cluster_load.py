"""A full load on a Spark cluster, from delivered files to a typed table, against a plain script.

Both are separate processes that start and stop their Spark, on a standalone cluster of two workers
with one core each on this machine, with shared files. Each load starts with empty tables.
"""

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import pyarrow.compute as pc
from pyarrow import dataset

from benchmarks.harness import NOW, Measured, measured_against, show
from benchmarks.plain_load import COLUMNS
from benchmarks.targets import NO_TARGET, targets_of
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.scaffolding.begin_project import begin_project
from lakehouse.settings import Settings
from lakehouse.spark import jars
from lakehouse_tests.cluster.spark_cluster import SparkCluster, running_cluster

FILES, FILE_BYTES = 40, 25_000_000
EASIEST = "each line typed and appended, the easiest"
ORDINARY = "the newest line of each id"
TARGETS = targets_of("executors")
OF_FORM = {EASIEST: TARGETS["load of all lines"], ORDINARY: TARGETS["load of the newest lines"]}
_SEED = 26
_TAILS = 20_000
_NAME = "orders"
_PACKAGE = "loaded"
_SHOWN = 4000
_BRONZE = '''\
"""`bronze.orders`: orders as they were delivered."""

from lakehouse.ingestion.feed_asset import feed_asset
from lakehouse.tables.feed import Feed, bronze_table

FEED = Feed(
    name="orders",
    table="bronze.orders",
    columns=[{names}],
)
TABLE = bronze_table(FEED, "Orders as they were delivered.")


@feed_asset(FEED, TABLE)
def orders(delivered):
    """Orders as they were delivered."""
    return delivered
'''
_SILVER = '''\
"""`silver.orders`: orders, typed."""

from lakehouse.iceberg.read.inputs import {read}
from lakehouse.iceberg.rules.rows import expression, not_null
from lakehouse.iceberg.rules.unique_and_references import unique
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.tables.table import Append, Column, IcebergTable, Merge

from {package}.assets.bronze.orders import TABLE as RAW

TABLE = IcebergTable(
    name="silver.orders",
    comment="Orders, typed.",
    rows_of=RAW,
    columns=[
{columns}
    ],
    write={write},
    rules=[not_null("id"), expression("amount_counts", "amount >= 0", columns=["amount"]){rules}],
)


@iceberg_asset(TABLE, inputs={{"raw": {read}(RAW)}})
def orders(raw):
    """Orders, typed."""
    return raw
'''
_FORMS = {
    EASIEST: {"read": "incremental", "write": "Append()", "rules": ""},
    ORDINARY: {"read": "versions_of", "write": 'Merge(on=["id"])', "rules": ', unique("id")'},
}


@dataclass(frozen=True)
class Loaded:
    """Result of a load: seconds of its process, and values that identify wrong rows."""

    seconds: float
    rows: int
    amount: Decimal


@dataclass(frozen=True)
class Loads:
    """Loads of the same files on one cluster, each in a subfolder of `folder`."""

    folder: Path
    cluster: SparkCluster
    settings: Settings

    @property
    def delivered(self) -> Path:
        """Folder of the files, which each load hard-links."""
        return self.folder / "delivered"

    def through_lakehouse(self, form: str) -> Loaded:
        """Load with `lakehouse ingest`, including all rules, checks and records."""
        root = self.folder / _PACKAGE
        settings = replace(self.settings, home=root / "home")
        _make_project(root, form)
        _link(self.delivered, settings.home / "inbox" / _NAME)
        command = [str(Path(sys.executable).with_name("lakehouse")), "ingest", _NAME]
        env = {
            **self.cluster.client_environment,
            "LAKEHOUSE_HOME": str(settings.home),
            "LAKEHOUSE_EXECUTORS": "2",
            "LAKEHOUSE_EXECUTOR_PYTHON": sys.executable,
        }
        seconds = _seconds_of(command, env, root)
        table = Catalog.of(settings).load(f"silver.{_NAME}")
        return self._result(root, seconds, Path(table.location().removeprefix("file://")))

    def by_hand(self, form: str) -> Loaded:
        """Load with the plain script."""
        root = self.folder / "plain"
        _link(self.delivered, root / "inbox")
        local = (jars.path(self.settings, jar) for jar in jars.pinned(self.settings))
        command = [sys.executable, "-m", "benchmarks.plain_load"]
        command += ["--inbox", str(root / "inbox"), "--warehouse", str(root / "warehouse")]
        command += ["--jars", ",".join(map(str, local)), "--master", self.cluster.url]
        command += ["--newest"] * (form == ORDINARY)
        env = {"PYSPARK_PYTHON": sys.executable}
        seconds = _seconds_of(command, env, root)
        return self._result(root, seconds, root / "warehouse" / "silver" / _NAME)

    def _result(self, root: Path, seconds: float, table: Path) -> Loaded:
        """Read the rows of a load into an empty table, and delete it."""
        files = dataset.dataset(table / "data", format="parquet")
        rows, amount = 0, Decimal()
        for batch in files.to_batches(columns=["amount"]):
            rows += batch.num_rows
            amount += pc.sum(batch.column("amount")).as_py() or Decimal()
        shutil.rmtree(root)
        return Loaded(seconds, rows, amount)


@contextmanager
def loads(folder: Path, files: int, file_bytes: int) -> Iterator[Loads]:
    """Deliver files, and run a cluster during the block."""
    shared = folder / "shared"
    deliver_orders(shared / "delivered", files, file_bytes)
    settings = replace(Settings.from_env(), home=folder / "home")
    with running_cluster(settings, folder / "cluster", kept=[shared]) as cluster:
        yield Loads(shared, cluster, settings)


def deliver_orders(folder: Path, files: int, file_bytes: int) -> None:
    """Write files of orders with distinct ids."""
    folder.mkdir(parents=True)
    tails, number = _tails(), 0
    for name in range(files):
        with (folder / f"{name:03}.csv").open("w", encoding="utf-8") as file:
            file.write(f"{','.join(COLUMNS)}\n")
            while file.tell() < file_bytes:
                lines = []
                for tail in tails[: _lines_left(file_bytes - file.tell())]:
                    lines.append(f"{number},{tail} {number * 7919 % 999_983}\n")
                    number += 1
                file.write("".join(lines))


def _tails() -> list[str]:
    """Return the rest of the lines after the id."""
    chosen = random.Random(_SEED)
    tails = []
    for number in range(_TAILS):
        customer, product = chosen.randrange(200_000), chosen.randrange(5000)
        amount = f"{chosen.randrange(1_000_000) / 100:.2f}"
        currency = chosen.choice(("MYR", "SGD", "IDR", "THB", "PHP"))
        status = chosen.choice(("PENDING", "APPROVED", "DECLINED"))
        placed = f"2026-{number % 9 + 1:02}-{number % 28 + 1:02}T{number % 24:02}:30:00Z"
        note = f"left at door {chosen.getrandbits(64):016x} of {chosen.getrandbits(64):016x}"
        tails.append(
            f"customer-{customer},product-{product},{amount},{currency},{status},{placed},{note}"
        )
    return tails


def _lines_left(bytes_left: int) -> int:
    return bytes_left // 140 + 1


def measure_loads(
    folder: Path, *, files: int, file_bytes: int, rounds: int
) -> dict[str, list[Measured]]:
    """Compare both ways in both forms; their rows must be equal."""
    measured = {}
    with loads(folder, files, file_bytes) as running:
        ways: Sequence[tuple[str, Callable[[str], Loaded]]] = (
            ("a plain Spark script", running.by_hand),
            ("lakehouse ingest", running.through_lakehouse),
        )
        for form in _FORMS:
            measured[f"The whole load on a cluster: {form}"] = _measured(form, ways, rounds)
    return measured


def _measured(
    form: str, ways: Sequence[tuple[str, Callable[[str], Loaded]]], rounds: int
) -> list[Measured]:
    done: dict[str, list[Loaded]] = {name: [] for name, _ in ways}
    for number in range(rounds):
        for name, run in reversed(ways) if number % 2 else ways:
            loaded = run(form)
            show(f"{form}: {name}, {loaded.seconds:.1f} s, {loaded.rows:,} rows")
            done[name].append(loaded)
    results = {(one.rows, one.amount) for each in done.values() for one in each}
    assert len(results) == 1, f"the ways gave different results: {results}"
    plain = [one.seconds for one in done[ways[0][0]]]
    measured = []
    for name, each in done.items():
        target = OF_FORM[form] if each is not done[ways[0][0]] else NO_TARGET
        measured.append(measured_against(plain, name, target, [one.seconds for one in each]))
    return measured


def _make_project(root: Path, form: str) -> None:
    begin_project(root, _PACKAGE, "0.1.0")
    assets = root / _PACKAGE / "assets"
    names = ", ".join(f'"{name}"' for name in COLUMNS)
    columns = "\n".join(
        f'        Column("{name}", "{kind}"),' for name, kind in COLUMNS.items()
    )
    bronze = _BRONZE.format(names=names)
    silver = _SILVER.format(package=_PACKAGE, columns=columns, **_FORMS[form])
    (assets / "bronze" / "orders.py").write_text(bronze, encoding="utf-8")
    (assets / "silver" / "orders.py").write_text(silver, encoding="utf-8")


def _link(folder: Path, target: Path) -> None:
    shutil.copytree(folder, target, copy_function=os.link)


def _seconds_of(command: Sequence[str], env: dict[str, str], folder: Path) -> float:
    started_at = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(NOW), **env},
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - started_at
    assert done.returncode == 0, (done.stdout + done.stderr)[-_SHOWN:]
    return seconds
