"""What an event log of our own and kept-open connections save of a late file.

Run as `python -m benchmarks.bench_event_log [--rounds N]`: a late file of 1,000 transactions is
ingested warm into one home, in turn with Dagster's own storage and with ours. Ours is there for
as long as it saves more than a tenth of the time that a late file takes until it is in gold,
which is the promise. The time of the processor, that of Java included, stands beside it: of that
it saves less, since much of what it spares is waiting for the disk.
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
    """Open instances as Dagster does, with no storage of ours."""
    with (
        patch.object(event_log, "kept_open", lambda _: nullcontext()),
        patch.object(instance, "_overrides", lambda _: {"compute_logs": NO_COMPUTE_LOGS}),
    ):
        yield


def timed(late: Late, settings: Settings) -> Times:
    """Return what one late file takes."""
    wall, cpu = time.perf_counter(), processor_seconds(os.getpid())
    assert late.deliver(settings)
    return Times(time.perf_counter() - wall, processor_seconds(os.getpid()) - cpu)


def timed_on_dagsters_own(late: Late, settings: Settings) -> Times:
    """Return what one late file takes without a storage of ours."""
    with dagsters_own():
        return timed(late, settings)


def main(rounds: int) -> None:
    """Compare both, and fail where the promise is broken."""
    began = conditions()
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
    sys.exit(0 if report("event_log", began, parts) else 1)


if __name__ == "__main__":
    main(options(__doc__, rounds=8).parse_args().rounds)
