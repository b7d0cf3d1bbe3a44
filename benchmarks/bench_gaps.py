"""Cost of gaps between the days of a delivery: 295 of 425 days against 295 consecutive days.

Run as `python -m benchmarks.bench_gaps [--rounds N] [--days N] [--rows N]`: one file with `--rows`
rows per day, from the inbox to daily tables of bronze, silver and gold, into an empty home and into
one that already has the days. On one JVM.
"""

import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.harness import Measured, Way, compare, conditions, options, report
from benchmarks.shop.invoice_lines import DAILY, FEED, LINES, SINCE
from benchmarks.targets import NO_TARGET, targets_of
from lakehouse.ingestion.feed_runs import ingest
from lakehouse.orchestration.deployment import open_engine
from lakehouse.project import Project
from lakehouse.settings import Settings

DAYS = 295
SPAN_DAYS = 425
ROWS_A_DAY = 200
TARGETS = targets_of("gaps")
PROJECT = Project("benchmarks.shop")
_FIRST = date.fromisoformat(SINCE)


class Homes:
    """Homes on one JVM, and deliveries with distinct lines."""

    def __init__(self, folder: Path, rows_a_day: int) -> None:
        self.folder, self.rows_a_day = folder, rows_a_day
        self.settings = replace(Settings.from_env(), home=folder / "none")
        self._numbers, self._lines = count(), count()

    def fresh(self) -> Settings:
        """Return an empty home."""
        return replace(self.settings, home=self.folder / f"home{next(self._numbers)}")

    def deliver(self, settings: Settings, days: Sequence[date]) -> Any:
        """Ingest a file with rows of all days; return the row and day counts of the tables."""
        inbox = settings.home / FEED.inbox
        inbox.mkdir(parents=True, exist_ok=True)
        lines = ["line_id,invoice_no,sold_on,quantity,price"]
        for day in days:
            for number in range(self.rows_a_day):
                line = f"{next(self._lines)},{number // 5},{day},{number % 9 + 1},{number}.50"
                lines.append(line)
        (inbox / f"{next(self._numbers)}.csv").write_text("\n".join([*lines, ""]))
        done = ingest(PROJECT.definitions, PROJECT.tables, settings, FEED)
        assert done.success, done.messages
        assert TARGETS["runs of a delivery"].is_met_by(len(done.runs)), f"{len(done.runs)} runs"
        return _contents(settings)


def _contents(settings: Settings) -> Any:
    engine = open_engine(settings)
    lines, daily = (engine.catalog.sql_name(table.name) for table in (LINES, DAILY))
    row = engine.spark.sql(
        f"SELECT count(1), count(DISTINCT sold_on), (SELECT sum(invoice_lines) FROM {daily})"
        f" FROM {lines}"
    ).first()
    assert row is not None
    return tuple(row)


def days_in_a_row(days: int) -> list[date]:
    """Return consecutive days."""
    return [_FIRST + timedelta(days=number) for number in range(days)]


def days_with_gaps(days: int) -> list[date]:
    """Return as many days of a longer range, including its first and last day."""
    span = days_in_a_row(round(days * SPAN_DAYS / DAYS))
    between = random.Random(1).sample(span[1:-1], days - 2)
    return sorted([span[0], *between, span[-1]])


def measure(homes: Homes, days: int, rounds: int) -> dict[str, list[Measured]]:
    """Compare both, into an empty home and into existing days."""
    parts: dict[str, list[Measured]] = {}
    kinds = {"in a row": days_in_a_row(days), "with gaps": days_with_gaps(days)}
    targets = {"in a row": NO_TARGET, "with gaps": TARGETS["days with gaps"]}
    empty = [
        Way(name, _onto_nothing(homes, of_kind), targets[name])
        for name, of_kind in kinds.items()
    ]
    parts[f"{days} days onto nothing"] = compare(empty, rounds=rounds, warm_ups=1)
    filled = {name: homes.fresh() for name in kinds}
    for name, settings in filled.items():
        homes.deliver(settings, kinds[name])
    again = [
        Way(name, _onto(homes, filled[name], of_kind), targets[name])
        for name, of_kind in kinds.items()
    ]
    parts[f"{days} days onto the same days"] = compare(again, rounds=rounds, warm_ups=1)
    return parts


def _onto_nothing(homes: Homes, days: Sequence[date]) -> Callable[[], Any]:
    return lambda: homes.deliver(homes.fresh(), days)


def _onto(homes: Homes, settings: Settings, days: Sequence[date]) -> Callable[[], Any]:
    return lambda: homes.deliver(settings, days)


def main(rounds: int, days: int, rows: int) -> None:
    """Run all parts; exit with 1 if a limit is exceeded."""
    environment = conditions()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        parts = measure(Homes(Path(name), rows), days, rounds)
    sys.exit(0 if report("gaps", environment, parts) else 1)


if __name__ == "__main__":
    parser = options(__doc__, rounds=5)
    parser.add_argument("--days", type=int, default=DAYS)
    parser.add_argument("--rows", type=int, default=ROWS_A_DAY, help="of each day")
    arguments = parser.parse_args()
    with suppress(KeyboardInterrupt):
        main(arguments.rounds, arguments.days, arguments.rows)
