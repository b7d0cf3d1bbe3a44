"""What it takes to read delivered files by executors of Spark and by the driver.

Run as `python -m benchmarks.bench_executors [--rounds N] [--small]`: 200 files of 25 MB, 10,000
small ones and one of 5 GB are judged and staged by the driver, and by tasks of Spark on one core
and on two; `--small` takes a tenth of each. Executors are processes of this machine, which begin
before the time is taken. The memory is that of all Python processes at its peak, beside that of
100 files.
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import psutil

from benchmarks.harness import (
    Figure,
    Measured,
    conditions,
    measured_against,
    options,
    report,
    show,
)
from lakehouse.cluster_settings import When
from lakehouse.ingestion.collect import collect_files
from lakehouse.ingestion.executor_reading import ExecutorReading
from lakehouse.ingestion.ingest import lock_feed
from lakehouse.runtime.deployment import open_engine
from lakehouse.runtime.package_zip import package_zip
from lakehouse.settings import Settings
from lakehouse.storage.object_store import LocalObjectStore
from lakehouse.tables.feed import Feed

FEED = Feed(
    "orders", ["id", "customer", "product", "amount", "note"], "bronze.orders", after="leave"
)
MEMORY_AT_MOST = 1.2
_LOOK_SECONDS = 0.05
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
    """What reading took: seconds, and bytes of memory of all Python processes at the peak."""

    seconds: float
    peak_bytes: int
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
    if when == "always":
        _warm_up(executors, home)
    with lock_feed(FEED, home) as ingest, _peak() as peak:
        began = time.perf_counter()
        delivery = collect_files(store, ingest, executors=executors)
        seconds = time.perf_counter() - began
    assert not delivery.rejected, delivery.rejected[0]
    assert not delivery.remark, delivery.remark
    return Reading(seconds, peak[0], delivery.rows)


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
) -> tuple[list[Measured], dict[str, int]]:
    """Return the times of each reader, and the peaks of memory."""
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
                    f"{form}: {reader}, {reading.seconds:.1f} s, {reading.peak_bytes >> 20} MB"
                )
                readings[reader].append(reading)
    assert len({one.rows for each in readings.values() for one in each}) == 1, readings
    seconds = {name: [one.seconds for one in each] for name, each in readings.items()}
    measured = [
        measured_against(seconds["driver"], name, None, of_reader)
        for name, of_reader in seconds.items()
    ]
    return measured, {
        name: max(one.peak_bytes for one in each) for name, each in readings.items()
    }


def main() -> None:
    """Run all forms, or read once as the child of a run."""
    parser = options(__doc__, rounds=3)
    parser.add_argument("--small", action="store_true", help="a tenth of each")
    parser.add_argument("--home", type=Path, help="read what waits there once, and no more")
    parser.add_argument("--reader", choices=READERS, default="driver")
    arguments = parser.parse_args()
    if arguments.home:
        print(json.dumps(asdict(read(arguments.home, arguments.reader))))  # noqa: T201
        return
    began = conditions()
    parts, figures = {}, []
    peaks: dict[str, dict[str, int]] = {}
    for form in FORMS:
        measured, peaks[form] = measure_form(
            form, is_small=arguments.small, rounds=arguments.rounds
        )
        parts[f"{form}, a tenth" if arguments.small else form] = measured
        for reader, peak_bytes in peaks[form].items():
            name = f"{form}, {reader}"
            figures.append(Figure(name, peak_bytes / peaks[_HUNDRED][reader], MEMORY_AT_MOST))
    title = "Memory of Python at its peak, over that of 100 files of 25 MB"
    sys.exit(not report("executors", began, parts, {title: figures}))


if __name__ == "__main__":
    main()
