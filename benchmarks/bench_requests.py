"""What a write, a read, a step of upkeep and a look cost in jobs of Spark and requests of Glue and
S3.

Run as `python -m benchmarks.bench_requests [--rows N] [--commits N]`. Each is done once in a
session that is warm, on an emulator of AWS that counts what it is asked. Tables have few files, so
that what is counted is what a commit or a look costs by itself. There are no seconds in it, and it
needs no idle machine.
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
from benchmarks.counted_requests import KINDS, Requests, counted_account
from benchmarks.emulated_account import environment_of, prepared_account
from benchmarks.harness import conditions, options, plain_table, report, show
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.health_measurement import read_table_health
from lakehouse.iceberg.metadata.write_result import Published, Unchanged
from lakehouse.iceberg.read.pinned_frames import read_main
from lakehouse.iceberg.rules.unique_and_references import unique
from lakehouse.iceberg.upkeep.compact import compact
from lakehouse.iceberg.upkeep.expire_snapshots import expire_snapshots
from lakehouse.iceberg.upkeep.remove_orphans import remove_orphans
from lakehouse.iceberg.upkeep.rewrite_manifests import rewrite_manifests
from lakehouse.iceberg.upkeep.step_result import StepResult
from lakehouse.iceberg.upkeep.table_statistics import compute_statistics
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.runtime.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse.storage.stores import open_store
from lakehouse.tables.table import IcebergTable, Merge

T = TypeVar("T")
ROWS, COMMITS = 1_000, 20
_TARGET_BYTES = 128 * 1024**2
_SHARE = 50
"""One row in so many is merged anew, and as many new ones beside it."""
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
    """What is counted of each thing that is done."""

    engine: Engine
    requests: Requests
    lines: list[list[str]] = field(default_factory=list)

    def of(self, name: str, work: Callable[[], T]) -> T:
        """Do a thing once, and keep what it took."""
        jobs, asked = self._jobs(), Counter(self.requests.counts)
        done = work()
        took = [
            self._jobs() - jobs,
            *(self.requests.counts[kind] - asked[kind] for kind in KINDS),
        ]
        self.lines.append([name, *map(str, took)])
        show(f"{name}: {dict(zip(_HEADS[1:], took, strict=True))}")
        return done

    def _jobs(self) -> int:
        """Return how many jobs were begun so far; Iceberg's own name their groups themselves."""
        return int(self.engine.spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


@contextmanager
def account() -> Iterator[tuple[Settings, Requests]]:
    """Emulate an account with a bucket, and return the settings of a deployment there."""
    with counted_account() as (address, requests), tempfile.TemporaryDirectory() as home:
        os.environ.update(environment_of(address), LAKEHOUSE_HOME=home)
        yield prepared_account(Path(home)), requests


def main(rows: int, commits: int) -> None:
    """Count all, and keep it."""
    began = conditions()
    with account() as (settings, requests):
        counts = Counts(open_engine(settings), requests)
        _count_appends(counts, rows, commits)
        _count_merges(counts, rows)
        _count_reads(counts, rows * (commits + 2))
        _count_upkeep(counts)
        _count_looks(counts, settings)
        title = f"Tables of some {rows:,} rows; {commits} commits before upkeep, of a file each"
        more = [plain_table(title, _HEADS, counts.lines)]
    sys.exit(0 if report("requests", began, {}, {}, more) else 1)


def _count_appends(counts: Counts, rows: int, commits: int) -> None:
    first = count(0, rows)

    def append(table: IcebergTable) -> None:
        # Each to a file.
        frame = orders(counts.engine, next(first), rows).coalesce(1)
        assert isinstance(write(counts.engine, table, lambda: frame), Published)

    for table in (PLAIN, APPENDED):
        # What only a first write does: it makes the table, and an empty one has no keys.
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
        "compute_statistics": lambda: compute_statistics(engine, name),
        "remove_orphans": lambda: remove_orphans(engine, name, older_than=datetime.now(UTC)),
    }
    for step, work in steps.items():
        done = counts.of(f"upkeep: {step}", work)
        expected = "skipped" if step == "remove_orphans" else "done"
        assert done.outcome == expected, done


def _count_looks(counts: Counts, settings: Settings) -> None:
    engine = counts.engine
    declared = [PLAIN.name]

    def look() -> None:
        engine.catalog.at_one_moment(declared)
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
