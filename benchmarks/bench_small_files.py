"""Cost of small files for readers, and cost of their compaction.

Run as `python -m benchmarks.bench_small_files [--rounds N] [--files N] [--commits N]
[--millions N]`: scan and planning on 5,000 small files against the same rows after upkeep; planning
on a table of 2,000 commits with regular upkeep against one of 10; and a compaction against a rewrite
of the same bytes as plain Parquet.
"""

import sys
import tempfile
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import ceil
from pathlib import Path

from benchmarks.bench_write import ORDERS, orders
from benchmarks.harness import Measured, Way, compare, conditions, options, report, show
from benchmarks.real_upkeep import keep_up
from benchmarks.targets import targets_of
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.evolve import planning
from lakehouse.iceberg.metadata.manifests import files
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.orchestration.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse.tables.upkeep import DEFAULTS
from lakehouse.upkeep.compaction import compact

FILES, COMMITS, MILLIONS = 5000, 2000, 5.0
TARGETS = targets_of("small_files")
ROWS_A_FILE = 200
FILES_A_COMMIT = 50
ROWS_A_COMMIT = 100
FEW_COMMITS = 10
COMMITS_A_DAY = 10
UPKEEP_EVERY = 100
"""Commits between upkeep runs; infrequent, to avoid a flattering result."""
TARGET_BYTES = 128 * 1024**2
AS_ICEBERG_WRITES = {"compression": "zstd", "parquet.compression.codec.zstd.level": "1"}
"""Parquet options that match the files of our tables."""


@dataclass(frozen=True)
class Table:
    """A table of orders that is filled by plain appends."""

    engine: Engine
    name: str

    @property
    def sql_name(self) -> str:
        """Its name in SQL."""
        return self.engine.catalog.sql_name(self.name)

    def create(self) -> None:
        """Create the table as declared."""
        planning.ensure(self.engine, replace(ORDERS, name=self.name), "")

    def append(self, first_id: int, rows: int, files: int) -> None:
        """Append orders in one commit with a number of files."""
        added = orders(self.engine, first_id, rows).repartition(files)
        added.writeTo(self.sql_name).append()

    def scan(self) -> str:
        """Read all rows."""
        query = f"SELECT count(1), sum(amount), sum(length(note)) FROM {self.sql_name}"
        return str(self.engine.sql(query).first())

    def plan(self) -> int:
        """Plan a scan of all rows without Spark; return the row count."""
        tasks = self.engine.catalog.load(self.name).scan().plan_files()
        return sum(task.file.record_count for task in tasks)

    def plan_in_spark(self) -> str:
        """Run a query whose planning skips all files."""
        return str(self.engine.sql(f"SELECT sum(id) FROM {self.sql_name} WHERE id < 0").first())


def measure_reads(engine: Engine, file_count: int, rounds: int) -> dict[str, list[Measured]]:
    """Compare reads of small files with reads after upkeep."""
    sick, kept = Table(engine, "bench.small_files"), Table(engine, "bench.joined_files")
    commits = max(1, file_count // FILES_A_COMMIT)
    of_commit = file_count // commits
    for table in (sick, kept):
        table.create()
        for number in range(commits):
            rows = ROWS_A_FILE * of_commit
            table.append(number * rows, rows, of_commit)
        show(f"{table.name}: {len(files(engine, table.name))} files in {commits} commits")
    keep_up(engine, [kept.name])
    show(f"{kept.name}: {len(files(engine, kept.name))} files after upkeep")

    title, after = f"{commits * of_commit} small files", "after upkeep"
    scans = [Way("before upkeep", sick.scan), Way(after, kept.scan, TARGETS["scan"], times=3)]
    plans = [
        Way("before upkeep", sick.plan),
        Way(after, kept.plan, TARGETS["planning"], times=3),
    ]
    queries = [
        Way("before upkeep", sick.plan_in_spark, times=3),
        Way(after, kept.plan_in_spark, times=3),
    ]
    return {
        f"{title}: a scan of all rows": compare(scans, rounds=rounds),
        f"{title}: planning it": compare(plans, rounds=rounds),
        f"{title}: a query that no file has rows of": compare(queries, rounds=rounds),
    }


def measure_history(engine: Engine, commits: int, rounds: int) -> dict[str, list[Measured]]:
    """Compare planning on a table of many commits with regular upkeep and on one of few commits."""
    few, many = Table(engine, "bench.few_commits"), Table(engine, "bench.many_commits")
    rows = commits * ROWS_A_COMMIT
    few.create()
    of_few = min(FEW_COMMITS, commits)
    for number in range(of_few):
        few.append(number * (rows // of_few), rows // of_few, 1)
    many.create()
    for number in range(commits):
        many.append(number * ROWS_A_COMMIT, ROWS_A_COMMIT, 1)
        if number % UPKEEP_EVERY == UPKEEP_EVERY - 1:
            keep_up(engine, [many.name], _as_of(engine, many.name))
            kept = len(read_history(engine, many.name).snapshots)
            show(f"{number + 1} commits; {kept} snapshots kept")
    keep_up(engine, [many.name], _as_of(engine, many.name))

    title = f"Planning after {commits} commits, with upkeep every {UPKEEP_EVERY}"
    target = TARGETS["planning after many commits"]
    in_spark = [
        Way(f"{of_few} commits", few.plan_in_spark, times=5),
        Way(f"{commits} commits and upkeep", many.plan_in_spark, target, times=5),
    ]
    by_pyiceberg = [
        Way(f"{of_few} commits", few.plan, times=5),
        Way(f"{commits} commits and upkeep", many.plan, target, times=5),
    ]
    return {
        f"{title}: a query in Spark": compare(in_spark, rounds=rounds),
        f"{title}: by PyIceberg": compare(by_pyiceberg, rounds=rounds),
    }


def _as_of(engine: Engine, table: str) -> datetime | None:
    """Return a simulated time with `COMMITS_A_DAY` commits per day; None with too few commits.

    At this time, the snapshot that many retention days of commits ago expires.
    """
    in_time = COMMITS_A_DAY * DEFAULTS.keep_snapshots_for.days
    appends = [item for item in read_history(engine, table).line if item.operation == "append"]
    if len(appends) <= in_time:
        return None
    return appends[in_time].committed_at + DEFAULTS.keep_snapshots_for + timedelta(seconds=1)


def measure_compaction(
    engine: Engine, millions: float, rounds: int, folder: Path
) -> dict[str, list[Measured]]:
    """Compare a compaction with a rewrite of the same files as plain Parquet."""
    sick = Table(engine, "bench.to_be_joined")
    sick.create()
    rows = int(millions * 100_000)
    for number in range(10):
        sick.append(number * rows, rows, FILES_A_COMMIT)
    small = files(engine, sick.name)
    paths = [file.path for file in small]
    size_bytes = sum(file.size_bytes for file in small)
    main = read_history(engine, sick.name).main
    assert main is not None

    def rewrite() -> int:
        frame = engine.spark.read.parquet(*paths).coalesce(ceil(size_bytes / TARGET_BYTES))
        writer = frame.write.mode("overwrite").options(**AS_ICEBERG_WRITES)
        writer.parquet((folder / "plain").as_uri())
        return len(paths)

    def join() -> int:
        result = compact(engine, sick.name, target_bytes=TARGET_BYTES)
        assert result.outcome == "done", result
        engine.sql(
            f"CALL {engine.catalog.name}.system.rollback_to_snapshot("
            f"'{engine.catalog.name}.{sick.name}', {main.snapshot_id})"
        ).collect()
        return int(result.step_metrics["rewritten_files"])

    ways = [
        Way("plain Parquet", rewrite),
        Way("compaction, and a rollback", join, TARGETS["compaction"]),
    ]
    title = f"{len(paths)} files of {size_bytes / 1e6:.0f} MB in all: written again"
    return {title: compare(ways, rounds=rounds, warm_ups=1)}


def main(rounds: int, file_count: int, commits: int, millions: float) -> None:
    """Run all parts; exit with 1 if a limit is exceeded."""
    environment = conditions()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        engine = open_engine(
            replace(Settings.from_env(), home=folder / "home", spark_memory="6g")
        )
        parts = {
            **measure_reads(engine, file_count, rounds),
            **measure_compaction(engine, millions, rounds, folder),
            **measure_history(engine, commits, rounds),
        }
    sys.exit(0 if report("small_files", environment, parts) else 1)


if __name__ == "__main__":
    parser = options(__doc__, rounds=5)
    parser.add_argument("--files", type=int, default=FILES, help=f"by default {FILES}")
    parser.add_argument("--commits", type=int, default=COMMITS, help=f"by default {COMMITS}")
    parser.add_argument("--millions", type=float, default=MILLIONS, help="rows to compact")
    chosen = parser.parse_args()
    main(chosen.rounds, chosen.files, chosen.commits, chosen.millions)
