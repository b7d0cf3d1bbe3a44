"""Compare ways to do one thing: warmed up, in alternating order, by the ratio of neighbouring
runs.

A machine's speed drifts, and so absolute times say little; the ratio of two runs beside each
other holds. Ways whose results differ are not compared: the run fails.
"""

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from benchmarks.process_times import Times
from benchmarks.results_index import RESULTS, write_index

NOW = Path(__file__).parent.parent
"""The code that is measured."""
_PACKAGES = ("pyspark", "pyiceberg", "dagster")


@dataclass(frozen=True)
class Way:
    """One way to do the thing: `run` does it and returns a value that tells whether it was done
    right.

    `at_most` is the ratio to the first way that it must not exceed; None where nothing is
    promised. A way that is much shorter than the others is run several `times` in its turn, of
    which the median counts: it is as warm as they are.
    """

    name: str
    run: Callable[[], Any]
    at_most: float | None = None
    times: int = 1


@dataclass(frozen=True)
class TimedWay:
    """One way that says itself what it took, such as the processor's time of other processes.

    `cpu_at_most` and `wall_at_most` are the ratios to the first way that it must not exceed.
    """

    name: str
    run: Callable[[], Times]
    cpu_at_most: float | None = None
    wall_at_most: float | None = None


_AnyWay = TypeVar("_AnyWay", Way, TimedWay)


@dataclass(frozen=True)
class Measured:
    """What came of one way: its times, and in each round its time over that of the first
    way.
    """

    name: str
    at_most: float | None
    seconds: Sequence[float]
    ratios: Sequence[float]

    @property
    def ratio(self) -> float:
        """The median ratio."""
        return statistics.median(self.ratios)

    @property
    def holds(self) -> bool:
        """Whether the promise is kept."""
        return self.at_most is None or self.ratio <= self.at_most


@dataclass(frozen=True)
class Figure:
    """A ratio that does not follow from time, such as of bytes; `at_most` is what is promised
    of it.
    """

    name: str
    ratio: float
    at_most: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the promise is kept."""
        return self.at_most is None or self.ratio <= self.at_most


def options(description: str | None, *, rounds: int) -> argparse.ArgumentParser:
    """Return the command line of a benchmark; `--rounds` is what all of them take."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=rounds, help=f"by default {rounds}")
    return parser


def clone_at(commit: str, folder: Path) -> Path:
    """Return a clone of this code as it was at a commit, in a folder; it is made where there is
    none.
    """
    if not (folder / "lakehouse").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run(["git", "clone", "--quiet", str(NOW), str(folder)], check=True)
    subprocess.run(["git", "checkout", "--quiet", commit], cwd=folder, check=True)
    return folder


def conditions() -> str:
    """Return the day, the commit and the load of the machine, to be asked when a benchmark
    begins.
    """
    load = f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    return f"{date.today():%Y-%m-%d} at {_commit()}; the load was {load} when it began"


def compare(ways: Sequence[Way], *, rounds: int = 7, warm_ups: int = 2) -> list[Measured]:
    """Run each way once in each round, the order turned around in every other one.

    :raises AssertionError: when two ways gave different results.
    """
    times = []
    for number in range(-warm_ups, rounds):
        took = _round(_in_turn(ways, number), _round_name(number, rounds))
        if number >= 0:
            times.append(took)
    first = [took[ways[0].name] for took in times]
    measured = []
    for way in ways:
        seconds = [took[way.name] for took in times]
        measured.append(measured_against(first, way.name, way.at_most, seconds))
    return measured


def compare_times(
    title: str, ways: Sequence[TimedWay], *, rounds: int, warm_ups: int = 1
) -> dict[str, list[Measured]]:
    """Run each way once in each round, the order turned around in every other one; return a
    part of the processor's time, and one of the time until it ends.
    """
    cpu: dict[str, list[float]] = {way.name: [] for way in ways}
    wall: dict[str, list[float]] = {way.name: [] for way in ways}
    for number in range(-warm_ups, rounds):
        for way in _in_turn(ways, number):
            took = way.run()
            show(f"{title}, {_round_name(number, rounds)}: {way.name}, {took}")
            if number >= 0:
                cpu[way.name].append(took.cpu)
                wall[way.name].append(took.wall)
    first = ways[0].name
    cpu_measured, wall_measured = [], []
    for way in ways:
        name = way.name
        cpu_measured.append(measured_against(cpu[first], name, way.cpu_at_most, cpu[name]))
        wall_measured.append(measured_against(wall[first], name, way.wall_at_most, wall[name]))
    return {
        f"{title}: time of the processor": cpu_measured,
        f"{title}: until it ends": wall_measured,
    }


def measured_against(
    first: Sequence[float], name: str, at_most: float | None, seconds: Sequence[float]
) -> Measured:
    """Return what came of a way, given the seconds of the first way in the same rounds."""
    ratios = [own / of_first for of_first, own in zip(first, seconds, strict=True)]
    return Measured(name, at_most, seconds, ratios)


def show(progress: str) -> None:
    """Print what was done: a benchmark takes minutes to hours."""
    print(f"{time.strftime('%H:%M:%S')} {progress}", file=sys.stderr, flush=True)  # noqa: T201


def table(title: str, measured: Sequence[Measured]) -> str:
    """Return the figures as a table in Markdown, with what they were measured on."""
    lines = [
        f"## {title}",
        "",
        "| way | median s | min s | max s | ratio | promised |",
        "|---|--:|--:|--:|--:|--:|",
        *(_line(of_way) for of_way in measured),
        "",
        f"{len(measured[0].seconds)} rounds; {_machine()}.",
        "",
    ]
    return "\n".join(lines)


def figures_table(title: str, figures: Sequence[Figure]) -> str:
    """Return ratios as a table in Markdown."""
    lines = [f"## {title}", "", "| | ratio | promised |", "|---|--:|--:|"]
    return "\n".join(
        [
            *lines,
            *(
                f"| {figure.name} | {figure.ratio:.3f} | {_promised(figure)} |"
                for figure in figures
            ),
            "",
        ]
    )


def plain_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown of which nothing is promised; all columns but the first are
    numbers.
    """
    lines = [heads, ["---", *["--:"] * (len(heads) - 1)], *rows]
    return "\n".join([f"## {title}", "", *(f"| {' | '.join(line)} |" for line in lines), ""])


def report(
    name: str,
    began: str,
    parts: Mapping[str, Sequence[Measured]],
    figures: Mapping[str, Sequence[Figure]] = MappingProxyType({}),
    more: Sequence[str] = (),
) -> bool:
    """Print the tables and save them as `results/<name>.md`; says whether each promise is kept.

    :param began: the `conditions` when it began.
    :param more: what is told besides, as Markdown.
    """
    tables = [table(title, measured) for title, measured in parts.items()]
    text = "\n".join(
        [
            f"Measured on {began}.\n",
            *tables,
            *(figures_table(title, of_title) for title, of_title in figures.items()),
            *more,
        ]
    )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(f"# {name}\n\n{text}", encoding="utf-8")
    write_index(RESULTS)
    print(text)  # noqa: T201
    return all(result.holds for part in (*parts.values(), *figures.values()) for result in part)


def _in_turn(ways: Sequence[_AnyWay], number: int) -> Sequence[_AnyWay]:
    return list(reversed(ways)) if number % 2 else ways


def _round_name(number: int, rounds: int) -> str:
    return "warm-up" if number < 0 else f"round {number + 1} of {rounds}"


def _round(ways: Sequence[Way], round_name: str) -> dict[str, float]:
    took, results = {}, {}
    for way in ways:
        each = []
        for _ in range(way.times):
            started = time.perf_counter()
            results[way.name] = way.run()
            each.append(time.perf_counter() - started)
        took[way.name] = statistics.median(each)
        show(f"{round_name}: {way.name}, {took[way.name]:.2f} s")
    assert len({repr(result) for result in results.values()}) == 1, (
        f"the ways gave different results: {results}"
    )
    return took


def _line(result: Measured) -> str:
    low, middle, high = (
        min(result.seconds),
        statistics.median(result.seconds),
        max(result.seconds),
    )
    return (
        f"| {result.name} | {middle:.2f} | {low:.2f} | {high:.2f} | {result.ratio:.2f} |"
        f" {_promised(result)} |"
    )


def _promised(result: Measured | Figure) -> str:
    if result.at_most is None:
        return ""
    return f"{result.at_most:.2f}{'' if result.holds else ' (broken)'}"


def _commit() -> str:
    """Return the commit that is measured; `+` where files but results were changed since."""
    commit = _git("rev-parse", "--short", "HEAD")
    changed = _git("diff", "--name-only", "HEAD", "--", ":/", ":(exclude,top)*/results/*.md")
    return f"{commit or 'an unknown commit'}{'+' if changed else ''}"


def _git(*arguments: str) -> str:
    folder = Path(__file__).parent
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _machine() -> str:
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    return (
        f"{os.cpu_count()} cores, {memory_gib:.0f} GiB; Python {platform.python_version()},"
        f" {packages}"
    )
