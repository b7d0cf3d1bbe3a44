"""Compares alternatives: with warm-up, in alternating order, by the ratio of adjacent runs.

The speed of a machine drifts, so absolute times mean little, but ratios of adjacent runs are stable.
Alternatives with different results fail.
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
from benchmarks.results_index import MISSED, RESULTS, write_index
from benchmarks.targets import NO_TARGET, Target

NOW = Path(__file__).parent.parent
"""The measured code."""
_PACKAGES = ("pyspark", "pyiceberg", "dagster")


@dataclass(frozen=True)
class Way:
    """An alternative: `run` returns a value to verify the result.

    `target` applies to the ratio to the first way. A much shorter way runs `times` times per turn,
    of which the median counts, so that it is equally warm.
    """

    name: str
    run: Callable[[], Any]
    target: Target = NO_TARGET
    times: int = 1


@dataclass(frozen=True)
class TimedWay:
    """An alternative that measures itself, such as CPU time of other processes.

    The targets apply to the ratios to the first way.
    """

    name: str
    run: Callable[[], Times]
    cpu_target: Target = NO_TARGET
    wall_target: Target = NO_TARGET


_AnyWay = TypeVar("_AnyWay", Way, TimedWay)


@dataclass(frozen=True)
class Measured:
    """Result of one way: its times, and the ratio to the first way in each round."""

    name: str
    target: Target
    seconds: Sequence[float]
    ratios: Sequence[float]

    @property
    def value(self) -> float:
        """The median ratio."""
        return statistics.median(self.ratios)


@dataclass(frozen=True)
class Figure:
    """A value other than the ratio of two times, such as a share of bytes."""

    name: str
    value: float
    target: Target = NO_TARGET


def options(description: str | None, *, rounds: int) -> argparse.ArgumentParser:
    """Return the argument parser of a benchmark with the common option `--rounds`."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=rounds, help=f"by default {rounds}")
    return parser


def clone_at(commit: str, folder: Path) -> Path:
    """Return a clone of this repository at a commit; creates it if it is missing."""
    if not (folder / "lakehouse").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run(["git", "clone", "--quiet", str(NOW), str(folder)], check=True)
    subprocess.run(["git", "checkout", "--quiet", commit], cwd=folder, check=True)
    return folder


def conditions() -> str:
    """Return date, commit and machine load; call it at the start of a benchmark."""
    load = f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    return f"{date.today():%Y-%m-%d} at {_commit()}; the load was {load} when it began"


def compare(ways: Sequence[Way], *, rounds: int = 7, warm_ups: int = 2) -> list[Measured]:
    """Run each way once per round, in alternating order.

    :raises AssertionError: two ways have different results.
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
        measured.append(measured_against(first, way.name, way.target, seconds))
    return measured


def compare_times(
    title: str, ways: Sequence[TimedWay], *, rounds: int, warm_ups: int = 1
) -> dict[str, list[Measured]]:
    """Run each way once per round, in alternating order; return CPU and wall times as parts."""
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
        cpu_measured.append(measured_against(cpu[first], name, way.cpu_target, cpu[name]))
        wall_measured.append(measured_against(wall[first], name, way.wall_target, wall[name]))
    return {
        f"{title}: time of the processor": cpu_measured,
        f"{title}: until it ends": wall_measured,
    }


def measured_against(
    first: Sequence[float], name: str, target: Target, seconds: Sequence[float]
) -> Measured:
    """Return the result of a way, given the seconds of the first way in the same rounds."""
    ratios = [own / of_first for of_first, own in zip(first, seconds, strict=True)]
    return Measured(name, target, seconds, ratios)


def show(progress: str) -> None:
    """Print progress: benchmarks take minutes to hours."""
    print(f"{time.strftime('%H:%M:%S')} {progress}", file=sys.stderr, flush=True)  # noqa: T201


def table(title: str, measured: Sequence[Measured]) -> str:
    """Return the results as a Markdown table with the environment."""
    lines = [
        f"## {title}",
        "",
        "| way | median s | min s | max s | ratio | requested | enforced |",
        "|---|--:|--:|--:|--:|--:|--:|",
        *(_line(of_way) for of_way in measured),
        "",
        f"{len(measured[0].seconds)} rounds; {_machine()}.",
        "",
    ]
    return "\n".join(lines)


def figures_table(title: str, figures: Sequence[Figure]) -> str:
    """Return figures as a Markdown table."""
    lines = [f"## {title}", "", "| | measured | requested | enforced |", "|---|--:|--:|--:|"]
    lines += [f"| {one.name} | {one.value:.3f} | {_limits(one)} |" for one in figures]
    return "\n".join([*lines, ""])


def plain_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table without targets; all columns but the first are numeric."""
    lines = [heads, ["---", *["--:"] * (len(heads) - 1)], *rows]
    return "\n".join([f"## {title}", "", *(f"| {' | '.join(line)} |" for line in lines), ""])


def report(
    name: str,
    environment: str,
    parts: Mapping[str, Sequence[Measured]],
    figures: Mapping[str, Sequence[Figure]] = MappingProxyType({}),
    more: Sequence[str] = (),
) -> bool:
    """Print the tables and save them as `results/<name>.md`; return whether all limits are met.

    :param environment: `conditions()` at the start.
    :param more: additional Markdown.
    """
    tables = [table(title, measured) for title, measured in parts.items()]
    text = "\n".join(
        [
            f"Measured on {environment}.\n",
            *tables,
            *(figures_table(title, of_title) for title, of_title in figures.items()),
            *more,
        ]
    )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(f"# {name}\n\n{text}", encoding="utf-8")
    write_index(RESULTS)
    print(text)  # noqa: T201
    results: list[Measured | Figure] = [result for part in parts.values() for result in part]
    results += [figure for part in figures.values() for figure in part]
    return all(result.target.is_met_by(result.value) for result in results)


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
        f"| {result.name} | {middle:.2f} | {low:.2f} | {high:.2f} | {result.value:.2f} |"
        f" {_limits(result)} |"
    )


def _limits(result: Measured | Figure) -> str:
    def cell(limit: float | None) -> str:
        return f"{limit:.3g}{MISSED if result.value > limit else ''}" if limit else ""

    return f"{cell(result.target.requested)} | {cell(result.target.enforced)}"


def _commit() -> str:
    """Return the measured commit, with `+` if files other than results are modified."""
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
