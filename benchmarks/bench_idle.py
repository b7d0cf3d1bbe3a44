"""CPU and memory of an idle `lakehouse dev`, compared with an earlier commit.

Run as `python -m benchmarks.bench_idle [--minutes N] [--settles N] [--before FOLDER]`; FOLDER is a
clone at `BEFORE_COMMIT` (default: created in the cache). Both run sequentially in this environment,
on homes with the demo's tables: first `--settles` minutes that are ignored, then the measurement.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.harness import NOW, Figure, clone_at, conditions, plain_table, report, show
from benchmarks.opened_dev import COMMAND, open_dev
from benchmarks.targets import targets_of
from lakehouse.settings import Settings

BEFORE_COMMIT = "c034ce7"
TARGETS = targets_of("idle")
MINUTES = 5.0
SETTLES_MINUTES = 3.0
_OF_CHILDREN = 4
"""psutil's process times start with user and system, also of finished children."""
_NAMES = {
    "java": "Spark",
    "dev_processes.watchdog": "watchdog",
    "warm_runs.run_server": "run server",
    "warm_up": "warm-up",
    "dev_processes.webserver": "webserver",
    "dagster._daemon": "daemon",
    "code-server": "code server's proxy",
    "grpc": "code server",
    "dev": "`lakehouse dev`",
}
"""Process names by the first of these texts in its command."""


@dataclass(frozen=True)
class Used:
    """CPU seconds of a process, and its proportional share of memory (PSS) in MB."""

    cpu: float
    memory: float


def main(minutes: float, settles: float, before: Path | None) -> None:
    """Measure both; exit with 1 if a limit is exceeded."""
    environment = conditions()
    trees = {f"before ({BEFORE_COMMIT})": before or before_tree(), "now": NOW}
    idle = {name: measure(name, tree, minutes, settles) for name, tree in trees.items()}
    earlier, now = idle.values()
    ratios = [
        Figure(
            "share of a core, of that before",
            cpu_of(now) / cpu_of(earlier),
            TARGETS["CPU share against before"],
        ),
        Figure("share of a core", cpu_of(now), TARGETS["CPU share"]),
        Figure("share of a core before", cpu_of(earlier)),
        Figure(
            "memory, of that before",
            memory_of(now) / memory_of(earlier),
            TARGETS["memory against before"],
        ),
    ]
    title = f"`lakehouse dev`, {minutes:g} idle minutes after {settles:g}"
    done = report("idle", environment, {}, {title: ratios}, [processes_table(idle)])
    sys.exit(0 if done else 1)


def measure(name: str, tree: Path, minutes: float, settles: float) -> Mapping[str, Used]:
    """Return the share of a core and the final memory of each process."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        env = os.environ | {
            "LAKEHOUSE_HOME": str(Path(folder, "home")),
            "PYTHONPATH": str(tree),
        }
        subprocess.run([*COMMAND, "demo"], env=env, cwd=folder, check=True, stdout=sys.stderr)
        with open_dev(env, Path(folder)) as dev:
            show(f"{name}: is open")
            idle = idle_share(dev, minutes, settles)
    show(
        f"{name}: {cpu_of(idle):.2%} of a core, {memory_of(idle):.0f} MB in {len(idle)} processes"
    )
    return idle


def idle_share(dev: psutil.Process, minutes: float, settles: float) -> Mapping[str, Used]:
    """Return the share of a core over some minutes and the final memory of each process.

    Waits for `settles` minutes first.
    """
    time.sleep(settles * 60)
    first, started_at = used_by(dev), time.monotonic()
    time.sleep(minutes * 60)
    last, seconds = used_by(dev), time.monotonic() - started_at
    idle = {}
    for process, used in last.items():
        taken = used.cpu - first.get(process, Used(0, 0)).cpu
        idle[process] = Used(taken / seconds, used.memory)
    return idle


def used_by(dev: psutil.Process) -> dict[str, Used]:
    """Return CPU seconds and memory of each process of a `lakehouse dev`."""
    used: dict[str, Used] = {}
    for process in [dev, *dev.children(recursive=True)]:
        # A finished process counts for its parent.
        with suppress(psutil.NoSuchProcess):
            cpu = sum(process.cpu_times()[:_OF_CHILDREN])
            memory = process.memory_full_info().pss / 1e6
            used[_name(process)] = Used(cpu, memory)
    return used


def _name(process: psutil.Process) -> str:
    command = " ".join(process.cmdline())
    return next((name for part, name in _NAMES.items() if part in command), "others")


def cpu_of(idle: Mapping[str, Used]) -> float:
    """Return the CPU use of all processes."""
    return sum(used.cpu for used in idle.values())


def memory_of(idle: Mapping[str, Used]) -> float:
    """Return the memory of all processes."""
    return sum(used.memory for used in idle.values())


def processes_table(idle: Mapping[str, Mapping[str, Used]]) -> str:
    """Return a Markdown table of the processes."""
    heads = ["process"]
    for name in idle:
        heads += [f"% of a core {name}", f"MB {name}"]
    processes = dict.fromkeys(process for of_tree in idle.values() for process in of_tree)
    rows = []
    for process in processes:
        rows.append([process, *_cells([of_tree.get(process) for of_tree in idle.values()])])
    sums = [Used(cpu_of(of_tree), memory_of(of_tree)) for of_tree in idle.values()]
    rows.append(["all", *_cells(sums)])
    return plain_table("By process", heads, rows)


def _cells(of_trees: list[Used | None]) -> Iterator[str]:
    for used in of_trees:
        yield f"{used.cpu * 100:.2f}" if used else ""
        yield f"{used.memory:.0f}" if used else ""


def before_tree() -> Path:
    """Return a clone at the earlier commit."""
    return clone_at(BEFORE_COMMIT, Settings.from_env().cache_dir / "bench" / "idle-before")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--settles", type=float, default=SETTLES_MINUTES)
    parser.add_argument("--before", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    with suppress(KeyboardInterrupt):
        main(arguments.minutes, arguments.settles, arguments.before)
