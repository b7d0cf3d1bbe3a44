"""What it takes to read delivered files by executors of Spark and by the driver, and what a whole
load on a cluster takes against a plain script.

Run as `python -m benchmarks.bench_executors [--rounds N] [--load-rounds N] [--small]
[--part reading|load]`.

Reading: 200 files of 25 MB, 10,000 small ones and one of 5 GB are judged and staged by the driver,
and by tasks of Spark on one core and on two. Executors are processes of this machine, which begin
before the time is taken; where Spark has one core, they and the driver have one. The memory is
that of all Python processes at its peak, and of the JVM what lives at the end after a collection
of garbage, beside those of 100 files.

Load: `lakehouse ingest` of `--load-files` files of `--load-mb` MB against a script as it is written
by hand, from files to a typed table, on a standalone cluster of two workers.

Some twenty minutes on two cores, and 12 GB of disk. `--small` takes a tenth of each. What came of
the reading is saved before the load begins; a part alone is saved under a name of its own.
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
from lakehouse.cluster_settings import When
from lakehouse.ingestion.collect import collect_files
from lakehouse.ingestion.executor_reading import ExecutorReading
from lakehouse.ingestion.ingest import lock_feed
from lakehouse.runtime.code_on_executors import package_zip
from lakehouse.runtime.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse.storage.object_store import LocalObjectStore
from lakehouse.tables.feed import Feed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEED = Feed(
    "orders", ["id", "customer", "product", "amount", "note"], "bronze.orders", after="leave"
)
MEMORY_AT_MOST = 1.2
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
"""How many cores Spark has."""


@dataclass(frozen=True)
class Reading:
    """What reading took: seconds, bytes of memory of all Python processes at the peak, and those
    that live in the JVM after a collection; none where no JVM is started.
    """

    seconds: float
    python_bytes: int
    jvm_bytes: int
    rows: int


def deliver(folder: Path, files: int, file_bytes: int) -> None:
    """Put files into the inbox, no two alike."""
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
    """Judge and stage what waits in the inbox, by a Spark of this process where it does."""
    cores = READERS[reader]
    settings = replace(Settings.from_env(), home=home, spark_master=f"local[{cores}]")
    engine = open_engine(settings)
    when: When = "never" if reader == "driver" else "always"
    executors = ExecutorReading(
        engine.session, when, is_elsewhere=False, package=lambda: package_zip(settings)
    )
    store = LocalObjectStore(home, settle_seconds=0)
    # A core of Spark's is a task at a time, which by itself takes whatever cores there are.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    if when == "always":
        _warm_up(executors, home)
    with lock_feed(FEED, home) as ingest, _peak() as peak:
        began = time.perf_counter()
        delivery = collect_files(store, ingest, executors=executors)
        seconds = time.perf_counter() - began
    assert not delivery.rejected, delivery.rejected[0]
    assert not delivery.remark, delivery.remark
    jvm_bytes = _living_bytes(engine.session()) if when == "always" else 0
    return Reading(seconds, peak[0], jvm_bytes, delivery.rows)


def _living_bytes(session: "SparkSession") -> int:
    """Return what the JVM holds on its heap once its garbage is collected; the first collection
    lets Spark forget what nobody asks for any more, which the next ones free.
    """
    jvm: Any = session.sparkContext._jvm
    runtime = jvm.java.lang.Runtime.getRuntime()
    for _ in range(_COLLECTIONS):
        jvm.java.lang.System.gc()
        time.sleep(_LOOK_SECONDS)
    return int(runtime.totalMemory() - runtime.freeMemory())


def _warm_up(executors: ExecutorReading, home: Path) -> None:
    """Start Spark and the Python of its tasks."""
    feed = replace(FEED, name="first")
    folder = home / feed.inbox
    if not folder.exists():
        deliver(folder, 8, 2_000)
    with lock_feed(feed, home) as ingest:
        collect_files(LocalObjectStore(home, settle_seconds=0), ingest, executors=executors)


@contextmanager
def _peak() -> Iterator[list[int]]:
    """Look again and again at how much memory all Python processes take."""
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
    """Read in a process of its own."""
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
    """Return the times of each reader, and all that it took."""
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
        measured_against(seconds["driver"], name, None, of_reader)
        for name, of_reader in seconds.items()
    ]
    return measured, readings


@dataclass(frozen=True)
class Memory:
    """What reading a form took of memory at most, in bytes."""

    python_bytes: int
    jvm_bytes: int

    @classmethod
    def of(cls, readings: Sequence[Reading]) -> "Memory":
        """Return that of some readings of one form by one reader."""
        return cls(
            max(one.python_bytes for one in readings),
            max(one.jvm_bytes for one in readings),
        )


def memory_figures(memory: Mapping[tuple[str, str], Memory]) -> list[Figure]:
    """Compare the memory of each form and reader with that of 100 files."""
    figures = []
    for (form, reader), taken in memory.items():
        of_hundred = memory[_HUNDRED, reader]
        name = f"{form}, {reader}"
        python = taken.python_bytes / of_hundred.python_bytes
        figures.append(Figure(f"{name}: Python", python, MEMORY_AT_MOST))
        if taken.jvm_bytes:
            java = taken.jvm_bytes / of_hundred.jvm_bytes
            figures.append(Figure(f"{name}: JVM", java, MEMORY_AT_MOST))
    return figures


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
    """What is reported of a run."""

    parts: dict[str, list[Measured]] = field(default_factory=dict)
    figures: dict[str, list[Figure]] = field(default_factory=dict)
    more: list[str] = field(default_factory=list)
    minutes: dict[str, float] = field(default_factory=dict)
    """How long each part of it took."""

    @contextmanager
    def taking(self, part: str) -> Iterator[None]:
        """Note how long a part takes."""
        began = time.perf_counter()
        yield
        self.minutes[part] = (time.perf_counter() - began) / 60
        show(f"{part}: took {self.minutes[part]:.1f} minutes")

    def report(self, name: str, began: str) -> bool:
        """Save what came of it so far, and how long the parts took; says whether each promise is
        kept.
        """
        rows = [[part, f"{minutes:.1f}"] for part, minutes in self.minutes.items()]
        more = [*self.more, plain_table("How long this took", ["", "minutes"], rows)]
        return report(name, began, self.parts, self.figures, more)


def measure_reading(results: Results, *, is_small: bool, rounds: int) -> None:
    """Read all forms by all readers."""
    memory = {}
    for form in FORMS:
        with results.taking(form):
            measured, readings = measure_form(form, is_small=is_small, rounds=rounds)
        results.parts[f"{form}, a tenth" if is_small else form] = measured
        for reader, each in readings.items():
            memory[form, reader] = Memory.of(each)
    results.figures["Memory, over that of 100 files of 25 MB"] = memory_figures(memory)
    results.more.append(_memory_table(memory))


def measure_load(results: Results, *, files: int, file_bytes: int, rounds: int) -> None:
    """Load files onto a cluster in both ways."""
    name = f"{files} files of {file_bytes // 1_000_000} MB"
    with tempfile.TemporaryDirectory() as folder, results.taking(f"loads of {name}"):
        measured = measure_loads(
            Path(folder), files=files, file_bytes=file_bytes, rounds=rounds
        )
    results.parts |= {f"{title}, {name}": of_form for title, of_form in measured.items()}


def main() -> None:
    """Run all parts, or read once as the child of a run."""
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
    began, results, is_small, part = conditions(), Results(), arguments.small, arguments.part
    name, holds = f"executors_{part}" if part else "executors", True
    if part != "load":
        measure_reading(results, is_small=is_small, rounds=arguments.rounds)
        holds = results.report(name, began)
    if part != "reading":
        files = max(1, arguments.load_files // (10 if is_small else 1))
        file_bytes = arguments.load_mb * 1_000_000
        measure_load(results, files=files, file_bytes=file_bytes, rounds=arguments.load_rounds)
        holds = results.report(name, began)
    sys.exit(not holds)


if __name__ == "__main__":
    main()
