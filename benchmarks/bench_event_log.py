"""What an event log of our own and kept-open connections save of a late file.

Run as `python -m benchmarks.bench_event_log [ROUNDS]`: a late file of 1,000 transactions is
ingested warm into one home, in turn with Dagster's own storage and with ours. CPU time counts
beside wall time, that of Java included, since other work on the machine slows the one and not
the other.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

from benchmarks.bench_bnpl import FEED, FIRST, LATE_ROWS, Late
from benchmarks.harness import RESULTS
from lakehouse.definitions import TABLES, definitions
from lakehouse.ingestion.feed_runs import ingest
from lakehouse.orchestration import event_log, instance
from lakehouse.orchestration.dagster_internals import NO_COMPUTE_LOGS
from lakehouse.sample_data.bnpl.generate import generate
from lakehouse.settings import Settings

DAYS = 30
ROWS_A_DAY = 3000
WARM_UPS = 2
OURS, DAGSTERS = "our event log and kept-open connections", "Dagster's own"
Times = tuple[float, float]


@contextmanager
def dagsters_own() -> Iterator[None]:
    """Open instances as Dagster does, with no storage of ours."""
    with (
        patch.object(event_log, "kept_open", lambda _: nullcontext()),
        patch.object(instance, "_overrides", lambda _: {"compute_logs": NO_COMPUTE_LOGS}),
    ):
        yield


def cpu_seconds() -> float:
    """Return the CPU time of this process and all below it, from Linux's `/proc`."""
    parents, ticks = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(stat.parent.name)
        parents[pid], ticks[pid] = int(fields[1]), sum(map(int, fields[11:15]))
    family = {os.getpid()}
    while below := {pid for pid in parents if parents[pid] in family} - family:
        family |= below
    return sum(ticks[pid] for pid in family) / os.sysconf("SC_CLK_TCK")


def timed(deliver: Callable[[], bool]) -> Times:
    """Return the wall and the CPU seconds of one late file."""
    wall, cpu = time.perf_counter(), cpu_seconds()
    assert deliver()
    return time.perf_counter() - wall, cpu_seconds() - cpu


def measure(deliver: Callable[[], bool], rounds: int) -> dict[str, list[Times]]:
    """Ingest late files both ways in turn, the order turned around in every other round."""
    times: dict[str, list[Times]] = {DAGSTERS: [], OURS: []}
    for number in range(-WARM_UPS, rounds):
        for name in (DAGSTERS, OURS) if number % 2 else (OURS, DAGSTERS):
            with dagsters_own() if name == DAGSTERS else nullcontext():
                took = timed(deliver)
            if number >= 0:
                times[name].append(took)
                print(name, *took, flush=True)  # noqa: T201
    return times


def table(times: dict[str, list[Times]]) -> str:
    """Return medians, and the medians of the ratios of neighbouring runs, in Markdown."""
    lines = ["| way | wall s | ratio | CPU s | ratio |", "|---|--:|--:|--:|--:|"]
    for name, took in times.items():
        cells = [name]
        for place in (0, 1):
            seconds = [each[place] for each in took]
            firsts = [each[place] for each in times[DAGSTERS]]
            ratios = [mine / first for mine, first in zip(seconds, firsts, strict=True)]
            cells += [f"{statistics.median(seconds):.2f}", f"{statistics.median(ratios):.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(rounds: int = 8) -> None:
    """Measure, and save what came of it with its date and commit."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        generated = generate(folder / "files", FIRST, DAYS, ROWS_A_DAY, seed=1)
        settings = replace(Settings.from_env(), home=folder / "home")
        inbox = settings.home / FEED.inbox
        inbox.mkdir(parents=True)
        for file in generated.files:
            (inbox / file.name).hardlink_to(file)
        assert ingest(definitions, TABLES, settings, FEED).success
        late = Late(generated.files[DAYS // 2])
        times = measure(lambda: late.deliver(settings), rounds)
    commit = subprocess.run(
        ["/usr/bin/env", "git", "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    text = (
        f"# event_log\n\nA late file of {LATE_ROWS:,} rows, ingested warm, {rounds} rounds in"
        f" turn; {datetime.now(UTC):%Y-%m-%d}, commit {commit}, load"
        f" {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.\n\n{table(times)}\n"
    )
    (RESULTS / "event_log.md").write_text(text, encoding="utf-8")
    print(text)  # noqa: T201


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
