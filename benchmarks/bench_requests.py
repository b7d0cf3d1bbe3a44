"""Spark jobs and Glue and S3 requests of a write, a read, an upkeep step and a sensor check.

Run as `python -m benchmarks.bench_requests [--rows N] [--commits N]`. Each runs once in a warm session
on an AWS emulator that counts requests. Tables have few files, so the counts are the fixed cost of a
commit or check. No times are measured, so no idle machine is required.
"""

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeVar

from benchmarks.bench_write import FIVE_RULES, ORDERS, orders
from benchmarks.emulated_account import environment_of, prepared_account
from benchmarks.harness import conditions, options, plain_table, report, show
from benchmarks.request_counter import KINDS, Requests, counting_account
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.health_measurement import read_table_health
from lakehouse.iceberg.read.pinned_frames import read_main
from lakehouse.iceberg.rules.unique_and_references import unique
from lakehouse.iceberg.upkeep.expire_snapshots import expire_snapshots
from lakehouse.iceberg.upkeep.remove_orphans import remove_orphans
from lakehouse.iceberg.upkeep.step_result import StepResult
from lakehouse.iceberg.values.write_result import Published, Unchanged
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.orchestration.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse.storage.stores import open_store
from lakehouse.tables.table import IcebergTable, Merge
from lakehouse.upkeep.compaction import compact
from lakehouse.upkeep.manifest_rewrite import rewrite_manifests

T = TypeVar("T")
ROWS, COMMITS = 1_000, 20
_TARGET_BYTES = 128 * 1024**2
_SHARE = 50
"""One of this many rows is merged as a change, with the same number of new rows."""
_HEADS = ("once", "Spark jobs", *KINDS)
_BLOCKING = tuple(replace(rule, on_failure="block") for rule in FIVE_RULES)
PLAIN = replace(ORDERS, name="bench.plain")
APPENDED = replace(ORDERS, name="bench.appended", rules=(*_BLOCKING, unique("id")))
COPIED = replace(
    ORDERS, name="bench.copied", write=Merge(on=("id",)), row_level="copy-on-write"
)
MARKED = replace(COPIED, name="bench.marked", row_level="merge-on-read")


@dataclass
class Counts:
    """Counts of each operation."""

    engine: Engine
    requests: Requests
    lines: list[list[str]] = field(default_factory=list)

    def of(self, name: str, work: Callable[[], T]) -> T:
        """Run an operation once and record its counts."""
        jobs, previous = self._jobs(), Counter(self.requests.counts)
        done = work()
        took = [
            self._jobs() - jobs,
            *(self.requests.counts[kind] - previous[kind] for kind in KINDS),
        ]
        self.lines.append([name, *map(str, took)])
        show(f"{name}: {dict(zip(_HEADS[1:], took, strict=True))}")
        return done

    def _jobs(self) -> int:
        """Return the number of jobs started so far; Iceberg sets its own job groups."""
        return int(self.engine.spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


@contextmanager
def account() -> Iterator[tuple[Settings, Requests]]:
    """Emulate an account with a bucket; yield the settings of a deployment in it."""
    with counting_account() as (address, requests), tempfile.TemporaryDirectory() as home:
        os.environ.update(environment_of(address), LAKEHOUSE_HOME=home)
        yield prepared_account(Path(home)), requests


def main(rows: int, commits: int) -> None:
    """Count all operations and save the result."""
    environment = conditions()
    with account() as (settings, requests):
        counts = Counts(open_engine(settings), requests)
        _count_appends(counts, rows, commits)
        _count_merges(counts, rows)
        _count_reads(counts, rows * (commits + 2))
        _count_upkeep(counts)
        _count_checks(counts, settings)
        title = f"Tables of some {rows:,} rows; {commits} commits before upkeep, of a file each"
        more = [plain_table(title, _HEADS, counts.lines)]
    sys.exit(0 if report("requests", environment, {}, {}, more) else 1)


def _count_appends(counts: Counts, rows: int, commits: int) -> None:
    first = count(0, rows)

    def append(table: IcebergTable) -> None:
        # One file each.
        frame = orders(counts.engine, next(first), rows).coalesce(1)
        assert isinstance(write(counts.engine, table, lambda: frame), Published)

    for table in (PLAIN, APPENDED):
        # The first write creates the table, and an empty table has no keys.
        append(table)
    counts.of(f"append of {rows:,} rows, no rule", lambda: append(PLAIN))
    counts.of("append, five rules and one that is unique", lambda: append(APPENDED))
    for _ in range(commits - 1):
        append(APPENDED)
    counts.of(f"the same, {commits} commits later", lambda: append(APPENDED))


def _count_merges(counts: Counts, rows: int) -> None:
    engine, changed = counts.engine, rows // _SHARE

    def merge(table: IcebergTable, first: int, number: int, kind: type = Published) -> None:
        frame = orders(engine, first, number).selectExpr(
            "* EXCEPT (note)", f"'{first}' AS note"
        )
        assert isinstance(write(engine, table, lambda: frame), kind)

    for table, mode in ((COPIED, "copy-on-write"), (MARKED, "merge-on-read")):
        merge(table, 0, rows)
        begin = rows - changed
        name = f"merge of {changed} changed and {changed} new rows, {mode}"
        counts.of(name, partial(merge, table, begin, 2 * changed))
        again = partial(merge, table, begin, 2 * changed, Unchanged)
        counts.of(f"the same again, which changes nothing, {mode}", again)


def _count_reads(counts: Counts, expected: int) -> None:
    catalog = counts.engine.catalog

    def by_spark() -> int:
        frame = read_main(counts.engine, APPENDED.name)
        return int(frame.selectExpr("count(note)").collect()[0][0])

    def by_pyiceberg() -> int:
        return catalog.load(APPENDED.name).scan(selected_fields=("note",)).to_arrow().num_rows

    files = catalog.load(APPENDED.name).inspect.files().num_rows
    assert counts.of(f"read of a column of {files} files, Spark", by_spark) == expected
    assert counts.of("the same, PyIceberg", by_pyiceberg) == expected


def _count_upkeep(counts: Counts) -> None:
    engine, name = counts.engine, APPENDED.name
    steps: dict[str, Callable[[], StepResult]] = {
        "rewrite_manifests": lambda: rewrite_manifests(engine, name),
        "compact": lambda: compact(engine, name, target_bytes=_TARGET_BYTES),
        "expire_snapshots": lambda: expire_snapshots(
            engine, name, older_than=datetime.now(UTC), keep=1
        ),
        "remove_orphans": lambda: remove_orphans(engine, name, older_than=datetime.now(UTC)),
    }
    for step, work in steps.items():
        done = counts.of(f"upkeep: {step}", work)
        expected = "skipped" if step == "remove_orphans" else "done"
        assert done.outcome == expected, done


def _count_checks(counts: Counts, settings: Settings) -> None:
    engine = counts.engine
    declared = [PLAIN.name]

    def look() -> None:
        engine.catalog.with_cached_locations(declared)
        open_store(settings).occupied("inbox/")

    def health() -> None:
        read_table_health(engine, PLAIN.name)

    counts.of("look of the sensor of all feeds", look)
    counts.of("look of upkeep at a table that changed", health)


if __name__ == "__main__":
    parser = options(__doc__, rounds=1)
    parser.add_argument("--rows", type=int, default=ROWS, help=f"of a write, by default {ROWS}")
    parser.add_argument(
        "--commits", type=int, default=COMMITS, help=f"before upkeep, by default {COMMITS}"
    )
    chosen = parser.parse_args()
    main(chosen.rows, chosen.commits)
