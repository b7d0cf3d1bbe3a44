"""Scaling with tables and feeds: 1,000 tables and 100 feeds against 10 tables and one feed.

Run as `python -m benchmarks.bench_tables [--rounds N] [--minutes N] [--settles N] [--idle]`. Both
projects have user-like code and current tables, see `many_tables`. Commands and sensor checks run in
separate processes; the queries of the UI's first page run on a `lakehouse dev`, whose idle CPU share
is measured afterwards. `--idle` measures only this share and saves it as `results/tables_idle.md`.
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
from benchmarks.targets import NO_TARGET, targets_of
from benchmarks.ui_queries import query_text
from lakehouse.project import Project
from lakehouse.settings import Settings

FEEDS = {"few_tables": 1, "many_tables": 100}
TARGETS = targets_of("tables")
MANY_TABLES = TARGETS["many tables"]
MINUTES, SETTLES_MINUTES = 3.0, 2.0
_LOAD = """
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster_shared.serdes import serialize_value
from {package}.definitions import defs
serialize_value(RepositorySnap.from_def(defs.get_repository_def()))
"""
"""What Dagster's code server does when it loads code and serves the daemon and webserver."""
_COMMANDS = ("status", "plan")
_CHECKS = """
query { assetNodes { assetKey { path } assetChecksOrError { ... on AssetChecks { checks {
  name description blocking
} } } } }
"""
"""All checks; the UI queries those of one table, and `status` the last results of all."""
_FIRST_PAGE, _ALL_CHECKS = "First page of the UI", "All checks, by name, of Dagster's server"
_CHECKS_OF_TABLE = "All checks of a table, as its page in the UI lists them"
_NO_SPARK = "sc://127.0.0.1:1"
"""No part of this uses Spark, and `dev` starts no server if a remote one is set: its constant cost
would hide differences.
"""
_BATCH = 1_000
_WARM_UP_CHECKS = 3
_REPETITIONS = 5
_RUN_SECONDS = 300
_NOTHING_NEW = "A look of all sensors that finds nothing new"
_CLOCKS = {"wall": "until it ends", "cpu": "time of the processor"}


@dataclass(frozen=True)
class Lakehouse:
    """A project with a filled home."""

    root: Path
    project: Project
    settings: Settings

    @property
    def env(self) -> dict[str, str]:
        """Environment of its commands."""
        kept = {name: value for name, value in os.environ.items() if name != "LAKEHOUSE_HOME"}
        path = os.pathsep.join([str(NOW), str(self.root)])
        return kept | {"PYTHONPATH": path, "SPARK_REMOTE": _NO_SPARK}

    @property
    def name(self) -> str:
        """Number of tables and feeds as text."""
        feeds = len(self.project.feeds)
        return f"{feeds * TABLES_OF_FEED:,} tables, {feeds} feed{'s' * (feeds > 1)}"


def main(rounds: int, minutes: float, settles: float, *, idle_only: bool) -> None:
    """Measure both; exit with 1 if a limit is exceeded."""
    environment = conditions()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        both = [_made(Path(folder, name), feeds) for name, feeds in FEEDS.items()]
        sizes = _sizes(both)
        parts = {} if idle_only else _commands(both, rounds) | _sensor_checks(both, rounds)
        queries, idle = {}, {}
        for lakehouse in both:
            with open_dev(lakehouse.env, lakehouse.root) as dev:
                if not idle_only:
                    queries[lakehouse.name] = _ui_query_seconds(lakehouse)
                idle[lakehouse.name] = idle_share(dev, minutes, settles)
            show(f"{lakehouse.name}: idle, {cpu_of(idle[lakehouse.name]):.2%} of a core")
    if not idle_only:
        parts |= _ui_parts(queries)
    title = f"`lakehouse dev`, {minutes:g} idle minutes after {settles:g}"
    few, many = map(cpu_of, idle.values())
    ratios = {
        title: [Figure("share of a core, of that of few", many / few, TARGETS["idle share"])]
    }
    more = [sizes, processes_table(idle)]
    name = "tables_idle" if idle_only else "tables"
    sys.exit(0 if report(name, environment, parts, ratios, more) else 1)


def _made(root: Path, feeds: int) -> Lakehouse:
    make_project(root, feeds)
    project, settings = open_project(root)
    started_at = time.perf_counter()
    fill_home(project, settings)
    made = Lakehouse(root, project, settings)
    show(f"{made.name}: made in {time.perf_counter() - started_at:.0f} s")
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
        target = NO_TARGET if one is both[0] else MANY_TABLES
        return TimedWay(one.name, lambda: times_of(command, one.env, one.root), target, target)

    return compare_times(title, [way(one) for one in both], rounds=rounds)


def _sensor_checks(both: Sequence[Lakehouse], rounds: int) -> dict[str, list[Measured]]:
    """Compare the first check of all sensors after a start, and checks without news."""
    taken: dict[str, list[list[Times]]] = {one.name: [] for one in both}
    for number in range(-1, rounds):
        for one in both if number % 2 else both[::-1]:
            sensor_times = _checks_of(one)
            show(f"Looks of all sensors: {one.name}, {sensor_times[0]} and {sensor_times[-1]}")
            # The first round is the first check of the home.
            if number >= 0:
                taken[one.name].append(sensor_times)
    parts: dict[str, list[Measured]] = {}
    kinds = {
        "First look of all sensors after a start": MANY_TABLES,
        _NOTHING_NEW: TARGETS["idle sensors"],
    }
    for title, target in kinds.items():
        for what in ("wall", "cpu"):
            seconds = [
                [_seconds(sensor_times, title, what) for sensor_times in taken[one.name]]
                for one in both
            ]
            parts[f"{title}: {_CLOCKS[what]}"] = [
                measured_against(seconds[0], both[0].name, NO_TARGET, seconds[0]),
                measured_against(seconds[0], both[1].name, target, seconds[1]),
            ]
    return parts


def _checks_of(one: Lakehouse) -> list[Times]:
    command = [
        sys.executable,
        "-m",
        "benchmarks.sensor_looks",
        str(_WARM_UP_CHECKS + _REPETITIONS),
    ]
    done = subprocess.run(
        command, cwd=one.root, env=one.env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [Times(*map(float, line.split())) for line in done.stdout.splitlines()]


def _seconds(sensor_times: Sequence[Times], title: str, what: str) -> float:
    chosen = sensor_times[_WARM_UP_CHECKS:] if title == _NOTHING_NEW else sensor_times[:1]
    return statistics.median(getattr(look, what) for look in chosen)


def _ui_query_seconds(one: Lakehouse) -> Mapping[str, list[float]]:
    """Return the seconds of the UI queries for the first page, one table's checks, and all checks."""
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
    queries = {_FIRST_PAGE: first_page, _CHECKS_OF_TABLE: checks_of_table, _ALL_CHECKS: checks}
    for title, ask in queries.items():
        for _ in range(_REPETITIONS):
            started_at = time.perf_counter()
            ask()
            took.setdefault(title, []).append(time.perf_counter() - started_at)
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


def _ui_parts(queries: Mapping[str, Mapping[str, list[float]]]) -> dict[str, list[Measured]]:
    (few, of_few), (many, of_many) = queries.items()
    return {
        title: [
            measured_against(of_few[title], few, NO_TARGET, of_few[title]),
            measured_against(of_few[title], many, MANY_TABLES, of_many[title]),
        ]
        for title in of_few
    }


def _sizes(both: Sequence[Lakehouse]) -> str:
    """Return a table with the sizes of the homes."""
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
        main(given.rounds, given.minutes, given.settles, idle_only=given.idle)
