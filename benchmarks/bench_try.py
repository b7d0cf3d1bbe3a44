"""How soon `lakehouse try` shows what a table would hold: beside `lakehouse dev`, and by itself.

Run as `python -m benchmarks.bench_try [--rounds N] [--settles SECONDS]`. The tables are those of
the demo. Each is tried by a command that finds the Spark of `dev` warm, and by one that starts a
Spark of its own.
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

TABLES = ("silver.fruits", "silver.bnpl_transactions_clean", "gold.bnpl_daily_summary")
SECONDS_AT_MOST = 10.0
"""Beside `dev`, until the rows are shown."""


def seconds_of(table: str, env: Mapping[str, str], folder: Path, how: str) -> float:
    """Try a table, and return how long it took."""
    took = times_of([*COMMAND, "try", table], env, folder).wall
    show(f"try {table}, {how}: {took:.2f} s")
    return took


def measure(rounds: int, settles: float) -> tuple[dict[str, list[Measured]], list[Figure]]:
    """Try each table by itself, then beside `dev`."""
    alone: dict[str, list[float]] = {table: [] for table in TABLES}
    beside: dict[str, list[float]] = {table: [] for table in TABLES}
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        env = os.environ | {"LAKEHOUSE_HOME": str(folder / "home")}
        subprocess.run([*COMMAND, "demo"], env=env, cwd=folder, check=True, stdout=sys.stderr)
        for _ in range(rounds):
            for table, seconds in alone.items():
                seconds.append(seconds_of(table, env, folder, "by itself"))
        with open_dev(env, folder):
            time.sleep(settles)
            for _ in range(rounds):
                for table, seconds in beside.items():
                    seconds.append(seconds_of(table, env, folder, "beside dev"))
    parts, figures = {}, []
    for table in TABLES:
        parts[f"`lakehouse try {table}`"] = [
            measured_against(alone[table], "by itself", None, alone[table]),
            measured_against(alone[table], "beside `lakehouse dev`", 1.0, beside[table]),
        ]
        title = f"`lakehouse try {table}` beside `dev`, of {SECONDS_AT_MOST:g} s"
        figures.append(Figure(title, statistics.median(beside[table]) / SECONDS_AT_MOST, 1.0))
    return parts, figures


def main(rounds: int, settles: float) -> None:
    """Measure both, and fail where a promise is broken."""
    began = conditions()
    parts, figures = measure(rounds, settles)
    sys.exit(0 if report("try", began, parts, {"What was asked for": figures}) else 1)


if __name__ == "__main__":
    parser = options(__doc__, rounds=3)
    parser.add_argument(
        "--settles", type=float, default=30.0, help="seconds after `dev` is open; by default 30"
    )
    arguments = parser.parse_args()
    with suppress(KeyboardInterrupt):
        main(arguments.rounds, arguments.settles)
