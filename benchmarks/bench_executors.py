"""Reading of delivered files by Spark executors and by the driver; full loads on a cluster.

Run as `python -m benchmarks.bench_executors [--rounds N] [--load-rounds N] [--small]
[--part reading|load]`.

Reading: the driver, and Spark tasks on one and on two cores, validate and stage 200 files of 25 MB,
10,000 small files and one of 5 GB. Executors are processes of this machine that start before the
measurement; with one Spark core, they share one core with the driver. Memory is the peak of all
Python processes and the JVM heap after a garbage collection, relative to 100 files.

Load: `lakehouse ingest` of `--load-files` files of `--load-mb` MB against a handwritten script, from
files to a typed table, on a standalone cluster of two workers.

Takes about 20 minutes on two cores and 12 GB of disk; `--small` takes a tenth of each. Results of the
reading are saved before the load starts; a single part is saved under its own name.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from benchmarks.cluster_load import FILE_BYTES, FILES, measure_loads
from benchmarks.harness import (
    Figure,
    Measured,
    conditions,
    measured_against,
    options,
    plain_table,
    report,
    show,
)
from benchmarks.targets import NO_TARGET, targets_of
from lakehouse.ingestion.collect import collect_files
from lakehouse.ingestion.feed_lock import lock_feed
from lakehouse.ingestion.staging.executor_reading import ExecutorReading
from lakehouse.orchestration.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse.settings.cluster_settings import When
from lakehouse.spark.project_code import package_zip
from lakehouse.storage.local_store import LocalObjectStore
from lakehouse.tables.feed import Feed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEED = Feed(
    "orders", ["id", "customer", "product", "amount", "note"], "bronze.orders", after="leave"
)
TARGETS = targets_of("executors")
_LOOK_SECONDS = 0.05
_COLLECTIONS = 3
_BLOCK_ROWS = 20_000
_ONE = "one file of 5 GB"
_HUNDRED = "100 files of 25 MB"
FORMS = {
    _HUNDRED: (100, 25_000_000),
    "200 files of 25 MB": (200, 25_000_000),
    "10,000 files of 2 kB": (10_000, 2_000),
    _ONE: (1, 5_000_000_000),
}
READERS = {"driver": 2, "executor of one core": 1, "executors of two cores": 2}
"""Number of Spark cores."""


@dataclass(frozen=True)
class Reading:
    """Result of a reading: seconds, peak memory of Python processes, and JVM heap (0 without JVM)."""

    seconds: float
    python_bytes: int
    jvm_bytes: int
    rows: int


def deliver(folder: Path, files: int, file_bytes: int) -> None:
    """Write distinct files into the inbox."""
    folder.mkdir(parents=True)
    lines = [
        f"{number},customer {number % 997},product {number % 89},{number % 1000}.50,as ordered\n"
        for number in range(_BLOCK_ROWS)
    ]
    block = "".join(lines).encode()
    for number in range(files):
        with (folder / f"{number}.csv").open("wb") as file:
            file.write(b"id,customer,product,amount,note\n")
            file.write(f"{number},first,of,this,file\n".encode())
            while file.tell() < file_bytes:
                rest = file_bytes - file.tell()
                last = block.rfind(b"\n", 0, rest) + 1
                file.write(block[: last or len(lines[0])])
                if not last:
                    break


def read(home: Path, reader: str) -> Reading:
    """Validate and stage the files of the inbox, with Spark in this process if required."""
    cores = READERS[reader]
    settings = replace(Settings.from_env(), home=home, spark_master=f"local[{cores}]")
    engine = open_engine(settings)
    when: When = "never" if reader == "driver" else "always"
    executors = ExecutorReading(
        engine.session, when, is_distributed=False, package=lambda: package_zip(settings)
    )
    store = LocalObjectStore(home, settle_seconds=0)
    # A Spark core runs one task, which can use all CPU cores unless restricted.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    if when == "always":
        _warm_up(executors, home)
    with lock_feed(FEED, home) as ingest, _peak() as peak:
        started_at = time.perf_counter()
        delivery = collect_files(store, ingest, executors=executors)
        seconds = time.perf_counter() - started_at
    assert not delivery.rejected, delivery.rejected[0]
    assert not delivery.remark, delivery.remark
    jvm_bytes = _living_bytes(engine.session()) if when == "always" else 0
    return Reading(seconds, peak[0], jvm_bytes, delivery.rows)


def _living_bytes(session: "SparkSession") -> int:
    """Return the JVM heap after garbage collection.

    The first collection lets Spark release its unreferenced objects; later ones free them.
    """
    jvm: Any = session.sparkContext._jvm
    runtime = jvm.java.lang.Runtime.getRuntime()
    for _ in range(_COLLECTIONS):
        jvm.java.lang.System.gc()
        time.sleep(_LOOK_SECONDS)
    return int(runtime.totalMemory() - runtime.freeMemory())


def _warm_up(executors: ExecutorReading, home: Path) -> None:
    """Start Spark and its Python workers."""
    feed = replace(FEED, name="first")
    folder = home / feed.inbox
    if not folder.exists():
        deliver(folder, 8, 2_000)
    with lock_feed(feed, home) as ingest:
        collect_files(LocalObjectStore(home, settle_seconds=0), ingest, executors=executors)


@contextmanager
def _peak() -> Iterator[list[int]]:
    """Sample the memory of all Python processes, and record the maximum."""
    peak, is_over = [0], threading.Event()

    def look() -> None:
        while not is_over.wait(_LOOK_SECONDS):
            peak[0] = max(peak[0], _python_bytes())

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield peak
    finally:
        is_over.set()
        looking.join()


def _python_bytes() -> int:
    own = psutil.Process()
    total = 0
    for process in [own, *own.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            if process.name().startswith("python"):
                total += process.memory_info().rss
    return total


def measure(home: Path, reader: str) -> Reading:
    """Read in a separate process."""
    command = [sys.executable, "-m", "benchmarks.bench_executors"]
    done = subprocess.run(
        [*command, "--home", str(home), "--reader", reader],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Reading(**json.loads(done.stdout.splitlines()[-1]))


def measure_form(
    form: str, *, is_small: bool, rounds: int
) -> tuple[list[Measured], dict[str, list[Reading]]]:
    """Return the times and results of each reader."""
    files, file_bytes = FORMS[form]
    if is_small:
        files, file_bytes = max(1, files // 10), file_bytes if files > 1 else file_bytes // 10
    readings: dict[str, list[Reading]] = {reader: [] for reader in READERS}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        deliver(home / FEED.inbox, files, file_bytes)
        for number in range(rounds):
            for reader in sorted(READERS, reverse=bool(number % 2)):
                reading = measure(home, reader)
                show(
                    f"{form}: {reader}, {reading.seconds:.1f} s,"
                    f" {_megabytes(reading.python_bytes)} MB in Python,"
                    f" {_megabytes(reading.jvm_bytes)} MB in the JVM"
                )
                readings[reader].append(reading)
    assert len({one.rows for each in readings.values() for one in each}) == 1, readings
    seconds = {name: [one.seconds for one in each] for name, each in readings.items()}
    measured = [
        measured_against(seconds["driver"], name, NO_TARGET, of_reader)
        for name, of_reader in seconds.items()
    ]
    return measured, readings


@dataclass(frozen=True)
class Memory:
    """Maximum memory of a form and reader in bytes."""

    python_bytes: int
    jvm_bytes: int

    @classmethod
    def of(cls, readings: Sequence[Reading]) -> "Memory":
        """Return the maximum of readings."""
        return cls(
            max(one.python_bytes for one in readings),
            max(one.jvm_bytes for one in readings),
        )


def memory_ratios(memory: Mapping[tuple[str, str], Memory]) -> list[Figure]:
    """Compare the memory of each form and reader with that of 100 files."""
    ratios = []
    for (form, reader), taken in memory.items():
        of_hundred = memory[_HUNDRED, reader]
        name = f"{form}, {reader}"
        python = taken.python_bytes / of_hundred.python_bytes
        ratios.append(Figure(f"{name}: Python", python, TARGETS["memory"]))
        if taken.jvm_bytes:
            java = taken.jvm_bytes / of_hundred.jvm_bytes
            ratios.append(Figure(f"{name}: JVM", java, TARGETS["memory"]))
    return ratios


def _memory_table(memory: Mapping[tuple[str, str], Memory]) -> str:
    rows = []
    for (form, reader), taken in memory.items():
        java = _megabytes(taken.jvm_bytes) if taken.jvm_bytes else ""
        rows.append([f"{form}, {reader}", _megabytes(taken.python_bytes), java])
    return plain_table("Memory", ["", "Python at its peak, MB", "live in the JVM, MB"], rows)


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes >> 20:,}"


@dataclass
class Results:
    """Results to report."""

    parts: dict[str, list[Measured]] = field(default_factory=dict)
    ratios: dict[str, list[Figure]] = field(default_factory=dict)
    more: list[str] = field(default_factory=list)
    minutes: dict[str, float] = field(default_factory=dict)
    """Duration of each part."""

    @contextmanager
    def taking(self, part: str) -> Iterator[None]:
        """Record the duration of a part."""
        started_at = time.perf_counter()
        yield
        self.minutes[part] = (time.perf_counter() - started_at) / 60
        show(f"{part}: took {self.minutes[part]:.1f} minutes")

    def report(self, name: str, environment: str) -> bool:
        """Save the results so far; return whether all limits are met."""
        rows = [[part, f"{minutes:.1f}"] for part, minutes in self.minutes.items()]
        more = [*self.more, plain_table("How long this took", ["", "minutes"], rows)]
        return report(name, environment, self.parts, self.ratios, more)


def measure_reading(results: Results, *, is_small: bool, rounds: int) -> None:
    """Read all forms with all readers."""
    memory = {}
    for form in FORMS:
        with results.taking(form):
            measured, readings = measure_form(form, is_small=is_small, rounds=rounds)
        results.parts[f"{form}, a tenth" if is_small else form] = measured
        for reader, each in readings.items():
            memory[form, reader] = Memory.of(each)
    results.ratios["Memory, over that of 100 files of 25 MB"] = memory_ratios(memory)
    results.more.append(_memory_table(memory))


def measure_load(results: Results, *, files: int, file_bytes: int, rounds: int) -> None:
    """Load files on a cluster in both ways."""
    name = f"{files} files of {file_bytes // 1_000_000} MB"
    with tempfile.TemporaryDirectory() as folder, results.taking(f"loads of {name}"):
        measured = measure_loads(
            Path(folder), files=files, file_bytes=file_bytes, rounds=rounds
        )
    results.parts |= {f"{title}, {name}": of_form for title, of_form in measured.items()}


def main() -> None:
    """Run all parts, or one reading as a child process."""
    parser = options(__doc__, rounds=1)
    parser.add_argument("--load-rounds", type=int, default=2, help="of the load; by default 2")
    parser.add_argument("--small", action="store_true", help="a tenth of each")
    parser.add_argument("--part", choices=["reading", "load"], help="one part alone")
    parser.add_argument("--load-files", type=int, default=FILES)
    parser.add_argument("--load-mb", type=int, default=FILE_BYTES // 1_000_000)
    parser.add_argument("--home", type=Path, help="read what waits there once, and no more")
    parser.add_argument("--reader", choices=READERS, default="driver")
    arguments = parser.parse_args()
    if arguments.home:
        print(json.dumps(asdict(read(arguments.home, arguments.reader))))  # noqa: T201
        return
    environment, results, is_small, part = (
        conditions(),
        Results(),
        arguments.small,
        arguments.part,
    )
    name, is_met = f"executors_{part}" if part else "executors", True
    if part != "load":
        measure_reading(results, is_small=is_small, rounds=arguments.rounds)
        is_met = results.report(name, environment)
    if part != "reading":
        files = max(1, arguments.load_files // (10 if is_small else 1))
        file_bytes = arguments.load_mb * 1_000_000
        measure_load(results, files=files, file_bytes=file_bytes, rounds=arguments.load_rounds)
        is_met = results.report(name, environment)
    sys.exit(not is_met)


if __name__ == "__main__":
    main()
