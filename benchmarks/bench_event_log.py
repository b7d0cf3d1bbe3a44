"""Time that our event log and kept-open connections save for a late file.

Run as `python -m benchmarks.bench_event_log [--rounds N]`: a late file of 1,000 transactions is
ingested warm into one home, alternating between Dagster's storage and ours. Ours must save at least
10 % of the time until gold. It saves less CPU time (including Java), since it mainly avoids disk
waits.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from benchmarks.bench_bnpl import FEED, FIRST, LATE_ROWS, Late
from benchmarks.harness import TimedWay, compare_times, conditions, options, report
from benchmarks.process_times import Times, processor_seconds
from lakehouse.definitions import TABLES, definitions
from lakehouse.ingestion.feed_runs import ingest
from lakehouse.orchestration import event_log, instance
from lakehouse.orchestration.dagster_internals import NO_COMPUTE_LOGS
from lakehouse.sample_data.bnpl.generate import generate
from lakehouse.settings import Settings

DAYS = 30
ROWS_A_DAY = 3000
WARM_UPS = 2
WALL_AT_MOST = 0.9


@contextmanager
def dagsters_own() -> Iterator[None]:
    """Use Dagster's default storage for instances."""
    with (
        patch.object(event_log, "kept_open", lambda _: nullcontext()),
        patch.object(instance, "_overrides", lambda _: {"compute_logs": NO_COMPUTE_LOGS}),
    ):
        yield


def timed(late: Late, settings: Settings) -> Times:
    """Return the time of one late file."""
    wall, cpu = time.perf_counter(), processor_seconds(os.getpid())
    assert late.deliver(settings)
    return Times(time.perf_counter() - wall, processor_seconds(os.getpid()) - cpu)


def timed_on_dagsters_own(late: Late, settings: Settings) -> Times:
    """Return the time of one late file with Dagster's storage."""
    with dagsters_own():
        return timed(late, settings)


def main(rounds: int) -> None:
    """Compare both; exit with 1 if the limit is exceeded."""
    environment = conditions()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        generated = generate(folder / "files", FIRST, DAYS, ROWS_A_DAY, seed=1)
        settings = replace(Settings.from_env(), home=folder / "home")
        inbox = settings.home / FEED.inbox
        inbox.mkdir(parents=True)
        for file in generated.files:
            (inbox / file.name).hardlink_to(file)
        assert ingest(definitions, TABLES, settings, FEED).success
        late = Late.of_one_day(generated.files[DAYS // 2])
        ways = [
            TimedWay("Dagster's own", lambda: timed_on_dagsters_own(late, settings)),
            TimedWay(
                "our event log and kept-open connections",
                lambda: timed(late, settings),
                wall_at_most=WALL_AT_MOST,
            ),
        ]
        title = f"A late file of {LATE_ROWS:,} rows, ingested warm"
        parts = compare_times(title, ways, rounds=rounds, warm_ups=WARM_UPS)
    sys.exit(0 if report("event_log", environment, parts) else 1)


if __name__ == "__main__":
    main(options(__doc__, rounds=8).parse_args().rounds)
