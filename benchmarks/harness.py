"""Compare ways to do one thing: warmed up, in alternating order, by the ratio of neighbouring
runs.

A machine's speed drifts, and so absolute times say little; the ratio of two runs beside each
other holds. Ways whose results differ are not compared: the run fails.
"""

import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

RESULTS = Path(__file__).with_name("results")
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
class Measured:
    """What came of one way: its times, and in each round its time over that of the first
    way.
    """

    way: Way
    seconds: Sequence[float]
    ratios: Sequence[float]

    @property
    def ratio(self) -> float:
        """The median ratio."""
        return statistics.median(self.ratios)

    @property
    def holds(self) -> bool:
        """Whether the promise is kept."""
        return self.way.at_most is None or self.ratio <= self.way.at_most


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


def compare(ways: Sequence[Way], *, rounds: int = 7, warm_ups: int = 2) -> list[Measured]:
    """Run each way once in each round, the order turned around in every other one.

    :raises AssertionError: when two ways gave different results.
    """
    for _ in range(warm_ups):
        _round(ways)
    times = [
        _round(ways if number % 2 == 0 else list(reversed(ways))) for number in range(rounds)
    ]
    first = ways[0].name
    return [
        Measured(
            way,
            [took[way.name] for took in times],
            [took[way.name] / took[first] for took in times],
        )
        for way in ways
    ]


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


def report(
    name: str,
    parts: Mapping[str, Sequence[Measured]],
    figures: Mapping[str, Sequence[Figure]] = MappingProxyType({}),
) -> bool:
    """Print the tables and save them as `results/<name>.md`; says whether each promise is
    kept.
    """
    tables = [table(title, measured) for title, measured in parts.items()]
    text = "\n".join(
        [
            f"Measured on {_when()}.\n",
            *tables,
            *(figures_table(title, of_title) for title, of_title in figures.items()),
        ]
    )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(f"# {name}\n\n{text}", encoding="utf-8")
    print(text)  # noqa: T201
    return all(result.holds for part in (*parts.values(), *figures.values()) for result in part)


def _round(ways: Sequence[Way]) -> dict[str, float]:
    took, results = {}, {}
    for way in ways:
        each = []
        for _ in range(way.times):
            started = time.perf_counter()
            results[way.name] = way.run()
            each.append(time.perf_counter() - started)
        took[way.name] = statistics.median(each)
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
        f"| {result.way.name} | {middle:.2f} | {low:.2f} | {high:.2f} | {result.ratio:.2f} |"
        f" {_promised(result)} |"
    )


def _promised(result: Measured | Figure) -> str:
    at_most = result.way.at_most if isinstance(result, Measured) else result.at_most
    return "" if at_most is None else f"{at_most:.2f}{'' if result.holds else ' (broken)'}"


def _when() -> str:
    """Return the day, and the commit that is measured; `+` where files were changed since."""
    describe = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    folder = Path(__file__).parent
    commit = subprocess.run(describe, cwd=folder, capture_output=True, text=True, check=False)
    return f"{date.today():%Y-%m-%d} at {commit.stdout.strip() or 'an unknown commit'}"


def _machine() -> str:
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    return (
        f"{os.cpu_count()} cores, {memory_gib:.0f} GiB; Python {platform.python_version()},"
        f" {packages}"
    )
