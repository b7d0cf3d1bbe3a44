"""Time that a warm Spark server saves in a run of several tables, against one session per step.

Run as `python -m benchmarks.bench_graph [--rounds N]`: a file of transactions lands, and one run
computes the graph from bronze to gold. Both are separate processes, measured from start to end: one
uses a Spark Connect server as `lakehouse dev` does, the other Dagster's multiprocess executor, which
opens Spark in each step.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import dagster as dg

from benchmarks.harness import Way, compare, conditions, options, report
from benchmarks.targets import targets_of
from lakehouse.assets.bronze.bnpl_transactions_raw import FEED
from lakehouse.assets.gold.bnpl_daily_summary import TABLE as SUMMARY
from lakehouse.assets.gold.customer_profiles import TABLE as PROFILES
from lakehouse.definitions import TABLES, definitions
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.ingestion.feed_runs import ingest
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.run_in_process import materialize
from lakehouse.sample_data.bnpl.generator import generate
from lakehouse.settings import Settings
from lakehouse.spark import spark_server

FIRST = date(2026, 1, 1)
LOADED_DAYS = 7
ROWS_A_DAY = 1000
TARGETS = targets_of("graph")
GRAPH = dg.AssetSelection.assets(asset_key(SUMMARY.name), asset_key(PROFILES.name)).upstream()


class Home:
    """A lakehouse with a week of transactions; each call delivers and computes the next day."""

    def __init__(self, home: Path, files: list[Path], way: str) -> None:
        self.settings, self._way = replace(Settings.from_env(), home=home), way
        self._inbox = home / FEED.inbox
        self._inbox.mkdir(parents=True)
        self._days = self._deliver(files)
        for _ in range(LOADED_DAYS):
            next(self._days)
        assert ingest(definitions, TABLES, self.settings, FEED).success

    def __call__(self) -> tuple[int, int]:
        """Return the row counts of gold tables."""
        day = next(self._days)
        env = os.environ | {"LAKEHOUSE_HOME": str(self.settings.home)}
        command = [sys.executable, "-m", __spec__.name, self._way, day.isoformat()]
        process = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert process.returncode == 0, process.stderr
        return self._rows(SUMMARY.name), self._rows(PROFILES.name)

    def _deliver(self, files: list[Path]) -> Iterator[date]:
        for number, file in enumerate(files):
            (self._inbox / file.name).hardlink_to(file)
            yield FIRST + timedelta(days=number)

    def _rows(self, table: str) -> int:
        main = Catalog.of(self.settings).load(table).current_snapshot()
        assert main is not None
        assert main.summary is not None
        return int(main.summary["total-records"])


def on_the_server(day: str) -> bool:
    """Run the graph in one process on the home's server, as the UI's run workers do."""
    settings = Settings.from_env()
    assert spark_server.find(settings), "no server runs"
    with open_instance(settings) as instance:
        return materialize(definitions(), instance, GRAPH, partition=day).success


def in_steps(day: str) -> bool:
    """Run the graph with a process and a Spark session per step."""
    with open_instance(Settings.from_env()) as instance:
        return dg.execute_job(
            dg.reconstructable(step_job), instance, tags={"dagster/partition": day}
        ).success


def step_job() -> dg.JobDefinition:
    """Return the job that runs each step in a process."""
    declared, job = (
        definitions(),
        dg.define_asset_job("steps", GRAPH, executor_def=dg.multiprocess_executor),
    )
    return dg.Definitions(
        assets=declared.assets, resources=declared.resources, jobs=[job]
    ).resolve_job_def(job.name)


def main(rounds: int) -> None:
    """Compare both; exit with 1 if the limit is exceeded."""
    environment = conditions()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        days = LOADED_DAYS + rounds + 1
        files = generate(Path(name) / "files", FIRST, days, ROWS_A_DAY, seed=1).files
        slow, warm = (Home(Path(name) / way, files, way) for way in WAYS)
        child, server = spark_server.start(warm.settings)
        try:
            spark_server.wait_for(warm.settings, child, server)
            ways = [
                Way("a Spark session for each step", slow),
                Way("on the warm server", warm, TARGETS["warm server"]),
            ]
            measured = compare(ways, rounds=rounds, warm_ups=1)
        finally:
            child.terminate()
            child.wait()
    title = f"A day of {ROWS_A_DAY} transactions, from bronze to gold in one run"
    sys.exit(0 if report("graph", environment, {title: measured}) else 1)


WAYS = {"steps": in_steps, "server": on_the_server}

if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1] in WAYS:
        # Imported by name, since the step processes look up `step_job` in this module.
        from benchmarks import bench_graph

        sys.exit(0 if bench_graph.WAYS[sys.argv[1]](sys.argv[2]) else 1)
    main(options(__doc__, rounds=3).parse_args().rounds)
