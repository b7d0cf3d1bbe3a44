"""What grows with tables and feeds: 1,000 tables and 100 feeds against 10 tables and one feed.

Run as `python -m benchmarks.bench_tables [--rounds N] [--minutes N] [--settles N] [--idle]`. Both
projects are written as a user would, and are up to date: see `many_tables`. Commands run as
processes of their own, and so do looks of the sensors; the queries of the UI's first page are asked
of a `lakehouse dev`, whose idle share is measured after them. `--idle` measures that share alone,
and keeps it as `results/tables_idle.md`.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from benchmarks.bench_idle import cpu_of, idle_share, processes_table
from benchmarks.harness import (
    NOW,
    Figure,
    Measured,
    TimedWay,
    compare_times,
    conditions,
    measured_against,
    options,
    plain_table,
    report,
    show,
)
from benchmarks.many_tables import TABLES_OF_FEED, fill_home, make_project, open_project
from benchmarks.opened_dev import COMMAND, PORT, open_dev
from benchmarks.process_times import Times, times_of
from benchmarks.ui_queries import query_text
from lakehouse.project import Project
from lakehouse.settings import Settings

FEEDS = {"few_tables": 1, "many_tables": 100}
AT_MOST, LOOK_AT_MOST, IDLE_AT_MOST = 20.0, 5.0, 2.0
MINUTES, SETTLES_MINUTES = 3.0, 2.0
_LOAD = """
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster_shared.serdes import serialize_value
from {package}.definitions import defs
serialize_value(RepositorySnap.from_def(defs.get_repository_def()))
"""
"""What Dagster's server of code does when it loads the code, and its daemon and webserver ask."""
_COMMANDS = ("status", "plan")
_CHECKS = """
query { assetNodes { assetKey { path } assetChecksOrError { ... on AssetChecks { checks {
  name description blocking
} } } } }
"""
"""All checks; the UI asks for those of one table, and `status` for the last results of all."""
_FIRST_PAGE, _ALL_CHECKS = "First page of the UI", "All checks, by name, of Dagster's server"
_CHECKS_OF_TABLE = "All checks of a table, as its page in the UI lists them"
_NO_SPARK = "sc://127.0.0.1:1"
"""Nothing here asks Spark, and `dev` keeps none where another is named: what it would take is the
same for both, and would hide what is not.
"""
_BATCH = 1_000
_SETTLING_LOOKS = 3
_ASKED = 5
_RUN_SECONDS = 300
_NOTHING_NEW = "A look of all sensors that finds nothing new"
_CLOCKS = {"wall": "until it ends", "cpu": "time of the processor"}


@dataclass(frozen=True)
class Lakehouse:
    """A project whose home is filled."""

    root: Path
    project: Project
    settings: Settings

    @property
    def env(self) -> dict[str, str]:
        """What its commands are told."""
        kept = {name: value for name, value in os.environ.items() if name != "LAKEHOUSE_HOME"}
        path = os.pathsep.join([str(NOW), str(self.root)])
        return kept | {"PYTHONPATH": path, "SPARK_REMOTE": _NO_SPARK}

    @property
    def name(self) -> str:
        """How many tables and feeds it has."""
        feeds = len(self.project.feeds)
        return f"{feeds * TABLES_OF_FEED:,} tables, {feeds} feed{'s' * (feeds > 1)}"


def main(rounds: int, minutes: float, settles: float, *, idle_alone: bool) -> None:
    """Measure both, and fail where a promise is broken."""
    began = conditions()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        both = [_made(Path(folder, name), feeds) for name, feeds in FEEDS.items()]
        sizes = _sizes(both)
        parts = {} if idle_alone else _commands(both, rounds) | _looks(both, rounds)
        asked, idle = {}, {}
        for lakehouse in both:
            with open_dev(lakehouse.env, lakehouse.root) as dev:
                if not idle_alone:
                    asked[lakehouse.name] = _asked_of_ui(lakehouse)
                idle[lakehouse.name] = idle_share(dev, minutes, settles)
            show(f"{lakehouse.name}: idle, {cpu_of(idle[lakehouse.name]):.2%} of a core")
    if not idle_alone:
        parts |= _ui_parts(asked)
    title = f"`lakehouse dev`, {minutes:g} idle minutes after {settles:g}"
    few, many = map(cpu_of, idle.values())
    figures = {title: [Figure("share of a core, of that of few", many / few, IDLE_AT_MOST)]}
    more = [sizes, processes_table(idle)]
    name = "tables_idle" if idle_alone else "tables"
    sys.exit(0 if report(name, began, parts, figures, more) else 1)


def _made(root: Path, feeds: int) -> Lakehouse:
    make_project(root, feeds)
    project, settings = open_project(root)
    began = time.perf_counter()
    fill_home(project, settings)
    made = Lakehouse(root, project, settings)
    show(f"{made.name}: made in {time.perf_counter() - began:.0f} s")
    return made


def _commands(both: Sequence[Lakehouse], rounds: int) -> dict[str, list[Measured]]:
    parts: dict[str, list[Measured]] = {}
    load = {one.name: ["-c", _LOAD.format(package=one.root.name)] for one in both}
    parts |= _processes("Definitions, as Dagster loads them", both, load, rounds)
    for command in _COMMANDS:
        of_both = {one.name: [*COMMAND[1:], command] for one in both}
        parts |= _processes(f"`lakehouse {command}`", both, of_both, rounds)
    return parts


def _processes(
    title: str, both: Sequence[Lakehouse], arguments: Mapping[str, list[str]], rounds: int
) -> dict[str, list[Measured]]:
    def way(one: Lakehouse) -> TimedWay:
        command = [sys.executable, *arguments[one.name]]
        at_most = None if one is both[0] else AT_MOST
        return TimedWay(
            one.name, lambda: times_of(command, one.env, one.root), at_most, at_most
        )

    return compare_times(title, [way(one) for one in both], rounds=rounds)


def _looks(both: Sequence[Lakehouse], rounds: int) -> dict[str, list[Measured]]:
    """Compare the first look of all sensors after a start, and those that find nothing new."""
    taken: dict[str, list[list[Times]]] = {one.name: [] for one in both}
    for number in range(-1, rounds):
        for one in both if number % 2 else both[::-1]:
            looks = _looks_of(one)
            show(f"Looks of all sensors: {one.name}, {looks[0]} and {looks[-1]}")
            # In the first round, the home was never looked at.
            if number >= 0:
                taken[one.name].append(looks)
    parts: dict[str, list[Measured]] = {}
    kinds = {"First look of all sensors after a start": AT_MOST, _NOTHING_NEW: LOOK_AT_MOST}
    for title, at_most in kinds.items():
        for what in ("wall", "cpu"):
            seconds = [
                [_seconds(looks, title, what) for looks in taken[one.name]] for one in both
            ]
            parts[f"{title}: {_CLOCKS[what]}"] = [
                measured_against(seconds[0], both[0].name, None, seconds[0]),
                measured_against(seconds[0], both[1].name, at_most, seconds[1]),
            ]
    return parts


def _looks_of(one: Lakehouse) -> list[Times]:
    command = [sys.executable, "-m", "benchmarks.sensor_looks", str(_SETTLING_LOOKS + _ASKED)]
    done = subprocess.run(
        command, cwd=one.root, env=one.env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [Times(*map(float, line.split())) for line in done.stdout.splitlines()]


def _seconds(looks: Sequence[Times], title: str, what: str) -> float:
    chosen = looks[_SETTLING_LOOKS:] if title == _NOTHING_NEW else looks[:1]
    return statistics.median(getattr(look, what) for look in chosen)


def _asked_of_ui(one: Lakehouse) -> Mapping[str, list[float]]:
    """Return the seconds of what the UI asks for its first page and for the checks of a table, and
    of all checks by name.
    """
    location = {"name": f"{one.root.name}.definitions"}

    def first_page() -> None:
        _ask(query_text("CodeLocationStatusQuery"), {})
        _ask(query_text("LocationWorkspaceQuery"), location)
        _ask(query_text("LocationWorkspaceAssetsQuery"), location)
        cursor = None
        while True:
            page = {"cursor": cursor, "limit": _BATCH}
            records = _ask(query_text("AssetRecordsQuery"), page)["assetRecordsOrError"]
            if len(records["assets"]) < _BATCH:
                return
            cursor = records["cursor"]

    def checks() -> None:
        nodes = _ask(_CHECKS, {})["assetNodes"]
        assert len(nodes) > len(one.project.feeds) * TABLES_OF_FEED

    def checks_of_table() -> None:
        path = min(one.project.graph.asset_check_keys).asset_key.path
        node = _ask(query_text("AssetChecksQuery"), {"assetKey": {"path": path}})
        assert node["assetNodeOrError"]["assetChecksOrError"]["checks"], path

    took: dict[str, list[float]] = {}
    asked = {_FIRST_PAGE: first_page, _CHECKS_OF_TABLE: checks_of_table, _ALL_CHECKS: checks}
    for title, ask in asked.items():
        for _ in range(_ASKED):
            began = time.perf_counter()
            ask()
            took.setdefault(title, []).append(time.perf_counter() - began)
        show(f"{one.name}: {title}, {statistics.median(took[title]):.2f} s")
    return took


def _ask(query: str, variables: Mapping[str, object]) -> dict[str, Any]:
    answer = requests.post(
        f"http://127.0.0.1:{PORT}/graphql",
        json={"query": query, "variables": variables},
        timeout=_RUN_SECONDS,
    ).json()
    assert "errors" not in answer, answer["errors"]
    data: dict[str, Any] = answer["data"]
    return data


def _ui_parts(asked: Mapping[str, Mapping[str, list[float]]]) -> dict[str, list[Measured]]:
    (few, of_few), (many, of_many) = asked.items()
    return {
        title: [
            measured_against(of_few[title], few, None, of_few[title]),
            measured_against(of_few[title], many, AT_MOST, of_many[title]),
        ]
        for title in of_few
    }


def _sizes(both: Sequence[Lakehouse]) -> str:
    """Say what the homes hold."""
    rows = []
    for one in both:
        done = subprocess.run(
            ["du", "-sm", str(one.settings.home)], capture_output=True, text=True, check=True
        )
        tables = str(len(one.project.tables))
        checks = str(len(one.project.graph.asset_check_keys))
        rows.append([one.name, tables, checks, done.stdout.split()[0]])
    heads = ["home", "tables with quarantines and our own", "checks", "MB of disk"]
    return plain_table("Homes", heads, rows)


if __name__ == "__main__":
    parser = options(__doc__, rounds=5)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--settles", type=float, default=SETTLES_MINUTES)
    parser.add_argument("--idle", action="store_true", help="the idle share alone")
    given = parser.parse_args()
    with suppress(KeyboardInterrupt):
        main(given.rounds, given.minutes, given.settles, idle_alone=given.idle)
