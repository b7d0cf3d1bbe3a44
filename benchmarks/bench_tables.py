"""What grows with tables and feeds: 1,000 tables and 100 feeds against 10 tables and one feed.

Run as `python -m benchmarks.bench_tables [--rounds N] [--minutes N] [--settles N]`. Both projects
are written as a user would, and are up to date: see `many_tables`. Commands run as processes of
their own; looks of the sensors in this one, as Dagster's server of code makes them; the queries of
the UI's first page are asked of a `lakehouse dev`, whose idle share is measured after them.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import requests

from benchmarks.bench_idle import PORT, cpu_of, idle_share, open_dev, processes_table
from benchmarks.harness import (
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
from benchmarks.process_times import Times, times_of
from benchmarks.ui_queries import query_text
from lakehouse.ingestion import feed_sensors, shared_sensor
from lakehouse.orchestration.instance import open_instance
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
_PROGRAM = "import sys; from lakehouse.cli import main; sys.exit(main())"
_COMMANDS = ("status", "plan")
_CHECKS = """
query { assetNodes { assetChecksOrError { ... on AssetChecks { checks {
  name executionForLatestMaterialization { status evaluation { severity } }
} } } } }
"""
_BATCH = 1_000
_SETTLING_LOOKS = 3
_ASKED = 5
_RUN_SECONDS = 300


@dataclass(frozen=True)
class Lakehouse:
    """A project whose home is filled."""

    root: Path
    project: Project
    settings: Settings

    @property
    def env(self) -> dict[str, str]:
        """What its commands are told."""
        own = Path(__file__).parent.parent
        kept = {name: value for name, value in os.environ.items() if name != "LAKEHOUSE_HOME"}
        return kept | {"PYTHONPATH": os.pathsep.join([str(own), str(self.root)])}

    @property
    def name(self) -> str:
        """How many tables and feeds it has."""
        feeds = len(self.project.feeds)
        return f"{feeds * TABLES_OF_FEED:,} tables, {feeds} feed{'s' * (feeds > 1)}"


def main(rounds: int, minutes: float, settles: float) -> None:
    """Measure both, and fail where a promise is broken."""
    began = conditions()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        both = [_made(Path(folder, name), feeds) for name, feeds in FEEDS.items()]
        parts = _commands(both, rounds) | _looks(both, rounds)
        asked, idle = {}, {}
        for lakehouse in both:
            with open_dev(lakehouse.env, lakehouse.root) as dev:
                asked[lakehouse.name] = _asked_of_ui(lakehouse)
                idle[lakehouse.name] = idle_share(dev, minutes, settles)
            show(f"{lakehouse.name}: idle, {cpu_of(idle[lakehouse.name]):.2%} of a core")
    parts |= _ui_parts(asked)
    title = f"`lakehouse dev`, {minutes:g} idle minutes after {settles:g}"
    few, many = map(cpu_of, idle.values())
    figures = {title: [Figure("share of a core, of that of few", many / few, IDLE_AT_MOST)]}
    more = [_sizes(both), processes_table(idle)]
    sys.exit(0 if report("tables", began, parts, figures, more) else 1)


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
        of_both = {one.name: ["-c", _PROGRAM, command] for one in both}
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
    """Compare the first look of all sensors of a process, and those that find nothing new."""

    def first(one: Lakehouse) -> Times:
        with _sensors(one) as sensors:
            return sensors.look()

    def nothing_new(one: Lakehouse) -> Times:
        with _sensors(one) as sensors:
            for _ in range(_SETTLING_LOOKS):
                sensors.look()
            looks = [sensors.look() for _ in range(_ASKED)]
        return Times(
            statistics.median(look.wall for look in looks),
            statistics.median(look.cpu for look in looks),
        )

    def ways(take: Any, at_most: float) -> list[TimedWay]:
        few, many = both
        return [
            TimedWay(few.name, lambda: take(few)),
            TimedWay(many.name, lambda: take(many), at_most, at_most),
        ]

    return {
        **compare_times("First look of all sensors", ways(first, AT_MOST), rounds=rounds),
        **compare_times(
            "A look that finds nothing new", ways(nothing_new, LOOK_AT_MOST), rounds=rounds
        ),
    }


@dataclass
class _Sensors:
    """All sensors of a lakehouse, as a process that has loaded the code asks them."""

    instance: dg.DagsterInstance
    repository: dg.RepositoryDefinition
    cursors: dict[str, str | None]

    def look(self) -> Times:
        """Ask each once, and say what that took."""
        wall, cpu = time.perf_counter(), time.process_time()
        for sensor in self.repository.sensor_defs:
            with dg.build_sensor_context(
                self.instance,
                cursor=self.cursors.get(sensor.name),
                repository_def=self.repository,
                sensor_name=sensor.name,
            ) as context:
                ticked = sensor.evaluate_tick(context)
                self.cursors[sensor.name] = context.cursor
            assert not ticked.run_requests, f"{sensor.name} asks for {ticked.run_requests}"
        return Times(time.perf_counter() - wall, time.process_time() - cpu)


@contextmanager
def _sensors(one: Lakehouse) -> Iterator[_Sensors]:
    """Open the sensors, which do not wait for files within a look."""
    feed_sensors.WATCH_SECONDS = shared_sensor.WATCH_SECONDS = 0.0
    repository = one.project.definitions(lambda: one.settings).get_repository_def()
    with open_instance(one.settings) as instance:
        yield _Sensors(instance, repository, {})


def _asked_of_ui(one: Lakehouse) -> Mapping[str, list[float]]:
    """Return the seconds of what the UI asks for its first page, and of the results of all
    checks.
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

    took: dict[str, list[float]] = {}
    for title, ask in {"First page of the UI": first_page, "All checks": checks}.items():
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
    arguments = parser.parse_args()
    with suppress(KeyboardInterrupt):
        main(arguments.rounds, arguments.minutes, arguments.settles)
