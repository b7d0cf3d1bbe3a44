"""What a warm Spark server saves a run of several tables, against a Spark session for each
step.

Run as `python -m benchmarks.bench_graph [--rounds N]`: a file of transactions lands, and one run
computes the whole graph from bronze to gold. Either way is a process of its own, timed from its
start to its end: one goes to a Spark Connect server as `lakehouse dev` keeps one, the other is
Dagster's multiprocess executor, whose every step opens Spark.
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
from lakehouse.assets.bronze.bnpl_transactions_raw import FEED
from lakehouse.assets.gold.bnpl_daily_summary import TABLE as SUMMARY
from lakehouse.assets.gold.customer_profiles import TABLE as PROFILES
from lakehouse.definitions import TABLES, definitions
from lakehouse.iceberg.metadata.catalog import Catalog
from lakehouse.ingestion.feed_runs import ingest
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.instance import open_instance
from lakehouse.orchestration.runs import materialize
from lakehouse.runtime import spark_server
from lakehouse.sample_data.bnpl.generate import generate
from lakehouse.settings import Settings

FIRST = date(2026, 1, 1)
LOADED_DAYS = 7
ROWS_A_DAY = 1000
AT_MOST = 0.4
"""It was 0.2 while the start of a session took three times as long: the way without a warm server
gained most when it became quicker.
"""
GRAPH = dg.AssetSelection.assets(asset_key(SUMMARY.name), asset_key(PROFILES.name)).upstream()


class Home:
    """A lakehouse with a week of transactions; each call lets the next day land and computes
    all tables of it.
    """

    def __init__(self, home: Path, files: list[Path], way: str) -> None:
        self.settings, self._way = replace(Settings.from_env(), home=home), way
        self._inbox = home / FEED.inbox
        self._inbox.mkdir(parents=True)
        self._days = self._deliver(files)
        for _ in range(LOADED_DAYS):
            next(self._days)
        assert ingest(definitions, TABLES, self.settings, FEED).success

    def __call__(self) -> tuple[int, int]:
        """Return how many rows are in gold."""
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
    """Run the graph as the UI's run workers do: in one process, on the server of the home."""
    settings = Settings.from_env()
    assert spark_server.find(settings), "no server runs"
    with open_instance(settings) as instance:
        return materialize(definitions(), instance, GRAPH, partition=day).success


def in_steps(day: str) -> bool:
    """Run the graph with a process and a Spark session for each step."""
    with open_instance(Settings.from_env()) as instance:
        return dg.execute_job(
            dg.reconstructable(step_job), instance, tags={"dagster/partition": day}
        ).success


def step_job() -> dg.JobDefinition:
    """Return the job of the graph, each step of which is a process."""
    declared, job = (
        definitions(),
        dg.define_asset_job("steps", GRAPH, executor_def=dg.multiprocess_executor),
    )
    return dg.Definitions(
        assets=declared.assets, resources=declared.resources, jobs=[job]
    ).resolve_job_def(job.name)


def main(rounds: int) -> None:
    """Compare both, and fail where the promise is broken."""
    began = conditions()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        days = LOADED_DAYS + rounds + 1
        files = generate(Path(name) / "files", FIRST, days, ROWS_A_DAY, seed=1).files
        slow, warm = (Home(Path(name) / way, files, way) for way in WAYS)
        child, server = spark_server.start(warm.settings)
        try:
            spark_server.wait_for(warm.settings, child, server)
            ways = [
                Way("a Spark session for each step", slow),
                Way("on the warm server", warm, AT_MOST),
            ]
            measured = compare(ways, rounds=rounds, warm_ups=1)
        finally:
            child.terminate()
            child.wait()
    title = f"A day of {ROWS_A_DAY} transactions, from bronze to gold in one run"
    sys.exit(0 if report("graph", began, {title: measured}) else 1)


WAYS = {"steps": in_steps, "server": on_the_server}

if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1] in WAYS:
        # By its name: the processes of the steps look for `step_job` there.
        from benchmarks import bench_graph

        sys.exit(0 if bench_graph.WAYS[sys.argv[1]](sys.argv[2]) else 1)
    main(options(__doc__, rounds=3).parse_args().rounds)
