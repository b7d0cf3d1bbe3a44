"""Cost of caching rows that a write reads twice, on one machine or as staged Parquet on a cluster.

Run as `python -m benchmarks.bench_kept_rows [--rounds N] [--rows N]`.
"""

import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pyspark.sql import DataFrame

from benchmarks.bench_write import orders
from benchmarks.harness import Measured, Way, compare, conditions, options, report
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.write import kept_rows
from lakehouse.iceberg.write.kept_rows import is_on_one_machine, keeping_rows
from lakehouse.orchestration.deployment import open_engine
from lakehouse.settings import Settings

ROWS = 2_000_000
FEW = 1_000


def read_twice(engine: Engine, rows: DataFrame) -> int:
    """Cache rows, count some of them, and read all of them again."""
    with keeping_rows(engine) as kept:
        frame = kept.keep(rows)
        some = frame.where("status = 'APPROVED'").count()
        frame.write.format("noop").mode("overwrite").save()
    return some


def as_on_a_cluster(action: Callable[[], int]) -> Callable[[], int]:
    """Return a function that runs the action as on a cluster."""

    def run() -> int:
        kept_rows.is_on_one_machine = lambda _: False
        try:
            return action()
        finally:
            kept_rows.is_on_one_machine = is_on_one_machine

    return run


def measure(engine: Engine, rows: int, rounds: int) -> list[Measured]:
    """Compare both for a number of rows."""
    frame = orders(engine, 0, rows)

    def action() -> int:
        return read_twice(engine, frame)

    return compare(
        [
            Way("where they were computed", action),
            Way("staged, as on a cluster", as_on_a_cluster(action)),
        ],
        rounds=rounds,
    )


def main() -> None:
    """Measure few rows and many."""
    environment = conditions()
    parser = options(__doc__, rounds=7)
    parser.add_argument("--rows", type=int, default=ROWS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        engine = open_engine(replace(Settings.from_env(), home=Path(folder), spark_memory="3g"))
        measured = {
            f"{rows:,} rows": measure(engine, rows, arguments.rounds)
            for rows in (FEW, arguments.rows)
        }
    sys.exit(not report("kept_rows", environment, measured))


if __name__ == "__main__":
    main()
