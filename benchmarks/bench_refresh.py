"""What readers see of a table during a recompute: Spark Declarative Pipelines against our tables.

Run as `python -m benchmarks.bench_refresh [--rounds N] [--rows N]`: both run the same query on the
same Spark server and catalog, and are refreshed in full. A PyIceberg reader counts the rows
continuously. Finally, a row arrives that the query cannot read, and both are refreshed again.
Limit: readers of our table never see a partial table.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import repeat
from pathlib import Path
from threading import Event, Thread

import yaml
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from benchmarks.harness import conditions, options, plain_table, report, show
from lakehouse.iceberg.catalog.catalog import CATALOG_NAME, Catalog
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.read.inputs import latest
from lakehouse.iceberg.values.write_result import Published
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.orchestration.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse.spark import spark_server
from lakehouse.tables.table import Append, Column, IcebergTable, Overwrite

ROWS = 10_000_000
CUSTOMERS = 500_000
PAUSE_SECONDS = 0.02
UNREADABLE = "n/a"
COMMITS = 3
HEADS = (
    "way",
    "went through",
    "seconds",
    "reads",
    "reads of no row",
    "seconds without rows",
    "rows afterwards",
)
SALES = IcebergTable(
    name="shop.sales",
    comment="Sales, as they were delivered.",
    columns=[
        Column("id", "bigint"),
        Column("customer_id", "bigint"),
        Column("amount", "string"),
    ],
    write=Append(once_by=()),
)
CUSTOMER_SUMS = IcebergTable(
    name="shop.customer_sums",
    comment="One row for each customer.",
    columns=[
        Column("customer_id", "bigint"),
        Column("sales", "bigint"),
        Column("amount", "decimal(20,2)"),
    ],
    write=Overwrite(),
)
VIEW = "shop.customer_sums_view"
QUERY = """
SELECT customer_id, count(1) AS sales, sum(CAST(amount AS DECIMAL(10,2))) AS amount
FROM {sales}
GROUP BY customer_id
"""


@dataclass(frozen=True)
class Read:
    """Row count of a reader and its time in seconds of a monotonic clock."""

    at: float
    rows: int


@dataclass(frozen=True)
class Refreshed:
    """One refresh: success, duration, and the reads during it."""

    succeeded: bool
    seconds: float
    reads: Sequence[Read]

    @cached_property
    def empty_reads(self) -> int:
        """Number of reads without rows."""
        return sum(read.rows == 0 for read in self.reads)

    @cached_property
    def empty_seconds(self) -> float:
        """Seconds from the first empty read to the next non-empty or last read."""
        first = next((read.at for read in self.reads if read.rows == 0), None)
        if first is None:
            return 0.0
        until = (read.at for read in self.reads if read.at > first and read.rows)
        return next(until, self.reads[-1].at) - first

    @property
    def rows_afterwards(self) -> int:
        """Row count of the last read."""
        return self.reads[-1].rows


class Reader:
    """Counts the rows of a table continuously; does not write."""

    def __init__(self, settings: Settings, table: str) -> None:
        self._catalog, self._table = Catalog.of(settings), table
        self._reads: list[Read] = []
        self._stopped = Event()

    def during(self, refresh: Callable[[], bool]) -> Refreshed:
        """Refresh the table and return the reads from before until after it."""
        thread = Thread(target=self._read_on)
        thread.start()
        started = time.perf_counter()
        try:
            succeeded = refresh()
            seconds = time.perf_counter() - started
        finally:
            self._stopped.set()
            thread.join()
        return Refreshed(succeeded, seconds, [*self._reads, self._read()])

    def _read_on(self) -> None:
        while not self._stopped.wait(PAUSE_SECONDS):
            self._reads.append(self._read())

    def _read(self) -> Read:
        rows = self._catalog.load(self._table).scan().count()
        return Read(time.perf_counter(), rows)


class Pipeline:
    """A pipeline with one materialized view, as run by `spark-pipelines`."""

    def __init__(
        self, folder: Path, settings: Settings, server: spark_server.SparkServer
    ) -> None:
        self._folder, self._server, self.output = folder, server, ""
        (folder / "transformations").mkdir(parents=True)
        (folder / "transformations" / "customer_sums.sql").write_text(
            f"CREATE MATERIALIZED VIEW {VIEW} AS {QUERY.format(sales=SALES.name)}",
            encoding="utf-8",
        )
        specification = {
            "name": "shop",
            "storage": (folder / "storage").as_uri(),
            "catalog": CATALOG_NAME,
            "database": "shop",
            "libraries": [{"glob": {"include": "transformations/**"}}],
            "configuration": dict(Catalog.of(settings).spark_configuration),
        }
        (folder / "spark-pipeline.yml").write_text(
            yaml.safe_dump(specification), encoding="utf-8"
        )

    def refresh(self) -> bool:
        """Run the pipeline; return whether it succeeded."""
        # What `spark-pipelines run` starts, without the JVM that starts it.
        command = [sys.executable, "-m", "pyspark.pipelines.cli", "run"]
        env = os.environ | {"SPARK_REMOTE": self._server.remote}
        done = subprocess.run(
            command, cwd=self._folder, env=env, capture_output=True, text=True, check=False
        )
        self.output = done.stdout + done.stderr
        return done.returncode == 0


def refresh_table(engine: Engine) -> bool:
    """Recompute our table; return whether it was published."""
    try:
        outcome = write(engine, CUSTOMER_SUMS, partial(sums, engine), {"sales": latest(SALES)})
    except PySparkException as e:
        show(f"ours failed: {str(e).splitlines()[0]}")
        return False
    return isinstance(outcome, Published)


def sums(engine: Engine, sales: DataFrame) -> DataFrame:
    """Return the sums of each customer."""
    return engine.spark.sql(QUERY, sales=sales)


def sales(engine: Engine, rows: int) -> DataFrame:
    """Return reproducible sales."""
    return engine.spark.range(rows).selectExpr(
        "id",
        f"pmod(hash(id), {CUSTOMERS}) AS customer_id",
        "CAST(CAST(pmod(hash(id, 2), 100000) / 100 AS DECIMAL(10,2)) AS STRING) AS amount",
    )


def one_more_sale(engine: Engine, amount: str) -> None:
    """Add a sale, so that the table is stale."""
    engine.sql(f"INSERT INTO {SALES.name} VALUES (-1, 7, '{amount}')").collect()


@contextmanager
def on_a_server(settings: Settings) -> Iterator[spark_server.SparkServer]:
    """Run a warm server, as `lakehouse dev` does."""
    child, server = spark_server.start(settings)
    try:
        spark_server.wait_for(settings, child, server)
        yield server
    finally:
        child.terminate()
        child.wait()


@dataclass(frozen=True)
class Way:
    """A way to recompute the sums: its table and its refresh function."""

    name: str
    table: str
    refresh: Callable[[], bool]


def refresh_in_turn(
    engine: Engine, settings: Settings, ways: Sequence[Way], rounds: int
) -> Iterator[tuple[str, Refreshed]]:
    """Refresh each way with a concurrent reader after a new sale; finally after an invalid one."""
    for amount in [*repeat("1.00", rounds), UNREADABLE]:
        one_more_sale(engine, amount)
        for way in ways:
            name = f"{way.name}, a row cannot be read" if amount == UNREADABLE else way.name
            refreshed = Reader(settings, way.table).during(way.refresh)
            show(", ".join(line(name, refreshed)))
            yield name, refreshed


def line(name: str, refreshed: Refreshed) -> Sequence[str]:
    """Return one refresh as a table row."""
    return (
        name,
        "yes" if refreshed.succeeded else "no",
        f"{refreshed.seconds:.1f}",
        f"{len(refreshed.reads)}",
        f"{refreshed.empty_reads}",
        f"{refreshed.empty_seconds:.1f}",
        f"{refreshed.rows_afterwards:,}",
    )


def commits(engine: Engine, table: str, last: int) -> Iterator[Sequence[str]]:
    """Yield the last commits of a table: operation and row count."""
    for snapshot in engine.catalog.load(table).metadata.snapshots[-last:]:
        if snapshot.summary is not None:
            operation = snapshot.summary.operation.value
            yield table, operation, f"{int(snapshot.summary['total-records'] or 0):,}"


def measure(settings: Settings, folder: Path, rounds: int, rows: int) -> bool:
    """Refresh both alternately and report; return whether our readers always saw all rows."""
    environment = conditions()
    with on_a_server(settings) as server:
        engine = open_engine(settings)
        write(engine, SALES, lambda: sales(engine, rows))
        pipeline = Pipeline(folder / "pipeline", settings, server)
        own_way = Way("ours", CUSTOMER_SUMS.name, partial(refresh_table, engine))
        ways = [Way("Spark Declarative Pipelines", VIEW, pipeline.refresh), own_way]
        for way in ways:
            assert way.refresh(), f"{way.name} computes nothing: {pipeline.output}"
        refreshed = [*refresh_in_turn(engine, settings, ways, rounds)]
        show(pipeline.output)
        history = [row for way in ways for row in commits(engine, way.table, COMMITS)]
        engine.spark.stop()
    lines = [line(name, of_one) for name, of_one in refreshed]
    title = f"Sums of {CUSTOMERS:,} customers of {rows:,} sales"
    tables = [
        plain_table(title, HEADS, lines),
        plain_table("The last commits", ("table", "operation", "rows then"), history),
    ]
    report("refresh", environment, {}, more=tables)
    return not any(of_one.empty_reads for name, of_one in refreshed if name.startswith("ours"))


def main(rounds: int, rows: int) -> None:
    """Show what readers see; exit with 1 if a reader of our table sees no rows."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        settings = replace(
            Settings.from_env(), home=folder / "home", spark_memory="4g", spark_remote=None
        )
        is_complete = measure(settings, folder, rounds, rows)
    sys.exit(0 if is_complete else 1)


if __name__ == "__main__":
    parser = options(__doc__, rounds=3)
    parser.add_argument("--rows", type=int, default=ROWS, help=f"by default {ROWS:,}")
    arguments = parser.parse_args()
    main(arguments.rounds, arguments.rows)
