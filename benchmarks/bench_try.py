"""Time of `lakehouse try` until it shows rows, with and without `lakehouse dev`.

Run as `python -m benchmarks.bench_try [--rounds N] [--settles SECONDS]` on the demo's tables. Commands
use the warm Spark of `dev`, or start their own.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from benchmarks.harness import (
    Figure,
    Measured,
    conditions,
    measured_against,
    options,
    report,
    show,
)
from benchmarks.opened_dev import COMMAND, open_dev
from benchmarks.process_times import times_of
from benchmarks.targets import NO_TARGET, targets_of

TABLES = ("silver.fruits", "silver.bnpl_transactions_clean", "gold.bnpl_daily_summary")
TARGETS = targets_of("try")


def seconds_of(table: str, env: Mapping[str, str], folder: Path, how: str) -> float:
    """Run `try` on a table and return the seconds."""
    took = times_of([*COMMAND, "try", table], env, folder).wall
    show(f"try {table}, {how}: {took:.2f} s")
    return took


def measure(rounds: int, settles: float) -> tuple[dict[str, list[Measured]], list[Figure]]:
    """Run `try` on each table without `dev`, then with it."""
    without_dev: dict[str, list[float]] = {table: [] for table in TABLES}
    with_dev: dict[str, list[float]] = {table: [] for table in TABLES}
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        env = os.environ | {"LAKEHOUSE_HOME": str(folder / "home")}
        subprocess.run([*COMMAND, "demo"], env=env, cwd=folder, check=True, stdout=sys.stderr)
        for _ in range(rounds):
            for table, seconds in without_dev.items():
                seconds.append(seconds_of(table, env, folder, "by itself"))
        with open_dev(env, folder):
            time.sleep(settles)
            for _ in range(rounds):
                for table, seconds in with_dev.items():
                    seconds.append(seconds_of(table, env, folder, "beside dev"))
    parts, figures = {}, []
    for table in TABLES:
        parts[f"`lakehouse try {table}`"] = [
            measured_against(without_dev[table], "by itself", NO_TARGET, without_dev[table]),
            measured_against(
                without_dev[table],
                "beside `lakehouse dev`",
                TARGETS["time against without dev"],
                with_dev[table],
            ),
        ]
        median = statistics.median(with_dev[table])
        figures.append(Figure(f"`lakehouse try {table}`", median, TARGETS["seconds with dev"]))
    return parts, figures


def main(rounds: int, settles: float) -> None:
    """Measure both; exit with 1 if a limit is exceeded."""
    environment = conditions()
    parts, figures = measure(rounds, settles)
    title = "Seconds beside `lakehouse dev`"
    sys.exit(0 if report("try", environment, parts, {title: figures}) else 1)


if __name__ == "__main__":
    parser = options(__doc__, rounds=3)
    parser.add_argument(
        "--settles", type=float, default=30.0, help="seconds after `dev` is open; by default 30"
    )
    arguments = parser.parse_args()
    with suppress(KeyboardInterrupt):
        main(arguments.rounds, arguments.settles)
