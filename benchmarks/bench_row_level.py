"""When merge-on-read (delete files) is cheaper than copy-on-write (file rewrites) for merged tables,
including reads and upkeep; the source of the numbers in `lakehouse.iceberg.evolve.row_level_mode`.

Run as `python -m benchmarks.bench_row_level [--rounds N] [--sizes MILLIONS…] [--shares SHARES…]`.
For each size and share of changed rows, a round is the time between two compactions: `MERGES` merges
through the full write (compare, stage, audit, publish), some full scans after each, and the
compaction of merge-on-read tables. Merge-on-read pays off if the sum is smaller.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from statistics import mean

from benchmarks.bench_write import ORDERS, orders
from benchmarks.harness import (
    Figure,
    Measured,
    conditions,
    measured_against,
    options,
    report,
    show,
)
from benchmarks.targets import NO_TARGET
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.values.write_result import Published
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.orchestration.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse.tables.declaration import RowLevel
from lakehouse.tables.table import IcebergTable, Merge
from lakehouse.upkeep.compaction import compact

SIZES = (0.1, 1.0, 5.0)
SHARES = (0.001, 0.01, 0.1, 0.3)
MODES: tuple[RowLevel, ...] = ("copy-on-write", "merge-on-read")
MERGES = 5
"""Merges until upkeep compacts: then each file has enough delete files (`MIN_FILES` of
`lakehouse.upkeep.compaction`).
"""
SCANS = 2
"""Full scans after each merge: one by a downstream table and one by a user."""
PARTS = ("a merge", "a scan", "all until it is compacted")


@dataclass
class Merged:
    """A table of orders that is merged by id in one mode, and the times by part."""

    engine: Engine
    mode: RowLevel
    rows: int
    share: float
    seconds: dict[str, list[float]] = field(
        default_factory=lambda: {name: [] for name in PARTS}
    )
    added_shares: list[float] = field(default_factory=list)
    """Bytes added by each merge, as a share of the table."""

    def __post_init__(self) -> None:
        name = f"bench.{self.mode.replace('-', '_')}_{self.rows}_{int(self.share * 1000)}"
        self.table: IcebergTable = replace(
            ORDERS, name=name, write=Merge(on=("id",)), row_level=self.mode
        )
        self.batches = count()
        write(self.engine, self.table, lambda: orders(self.engine, 0, self.rows))
        self.table_bytes = self._bytes()

    def play_round(self) -> None:
        """Merge and scan alternately, then compact; record the times."""
        merges, scans = [], []
        for _ in range(MERGES):
            merges.append(_seconds_of(self._merge))
            scans += [_seconds_of(self._scan) for _ in range(SCANS)]
        compaction = 0.0
        if self.mode == "merge-on-read":
            compaction = _seconds_of(self._compact)
        together = sum(merges) + sum(scans) + compaction
        for part, seconds in zip(PARTS, (mean(merges), mean(scans), together), strict=True):
            self.seconds[part].append(seconds)
        show(
            f"{self.table.name}: a merge {mean(merges):.2f} s, a scan {mean(scans):.2f} s,"
            f" compaction {compaction:.2f} s"
        )

    def _merge(self) -> None:
        """Change a share of the rows, distributed over the table, different ones each time."""
        batch = next(self.batches)
        is_changed = f"pmod(hash(id, {batch}), 1000) < {self.share * 1000:.0f}"
        changed = (
            orders(self.engine, 0, self.rows)
            .where(is_changed)
            .selectExpr(
                *[name for name in self.table.column_names if name != "note"],
                f"'changed {batch}' AS note",
            )
        )
        published = write(self.engine, self.table, lambda: changed)
        assert isinstance(published, Published), published
        assert published.updated_rows, published
        self.added_shares.append(published.added_bytes / self.table_bytes)

    def _scan(self) -> None:
        name = self.engine.catalog.sql_name(self.table.name)
        self.engine.sql(
            f"SELECT count(1), sum(amount), max(note), max(merchant) FROM {name}"
        ).collect()

    def _compact(self) -> None:
        target_bytes = self.table.target_file_mb * 1024**2
        result = compact(self.engine, self.table.name, target_bytes=target_bytes)
        assert result.outcome == "done", result

    def _bytes(self) -> int:
        main = read_history(self.engine, self.table.name).main
        assert main is not None
        return main.count("total-files-size")

    def checksum(self) -> str:
        """Return a value that identifies the rows of the table."""
        name = self.engine.catalog.sql_name(self.table.name)
        row = self.engine.sql(f"SELECT count(1), bit_xor(xxhash64(*)) FROM {name}").first()
        return str(row)


def measure(
    engine: Engine, millions: float, share: float, rounds: int, warm_ups: int
) -> tuple[dict[str, list[Measured]], dict[str, list[Figure]]]:
    """Return the times of merges, scans and their sum until compaction, and the added bytes.

    :param warm_ups: ignored rounds.
    :raises AssertionError: the tables differ at the end.
    """
    rows = int(millions * 1_000_000)
    tables = [Merged(engine, mode, rows, share) for mode in MODES]
    for number in range(warm_ups + rounds):
        for table in reversed(tables) if number % 2 else tables:
            table.play_round()
    assert len({table.checksum() for table in tables}) == 1, "the tables differ"
    size = f"{millions:g} million rows, {tables[0].table_bytes / 1e6:.0f} MB"
    title = f"{size}, {share:.1%} of the rows change"
    parts = {}
    for part in PARTS:
        first = tables[0].seconds[part][warm_ups:]
        parts[f"{title}: {part}"] = [
            measured_against(first, table.mode, NO_TARGET, table.seconds[part][warm_ups:])
            for table in tables
        ]
    ratios = [Figure(table.mode, mean(table.added_shares)) for table in tables]
    return parts, {f"{title}: bytes that a merge adds, of the table's": ratios}


def _seconds_of(action: Callable[[], None]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def main(rounds: int, millions: Sequence[float], shares: Sequence[float]) -> None:
    """Measure each size and share; there are no targets, since the rule is derived from it."""
    environment = conditions()
    parts: dict[str, list[Measured]] = {}
    ratios: dict[str, list[Figure]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        engine = open_engine(replace(Settings.from_env(), home=Path(folder), spark_memory="6g"))
        for size in millions:
            for share in shares:
                # Spark is warm after the first part.
                of_parts, of_bytes = measure(engine, size, share, rounds, 0 if parts else 1)
                parts |= of_parts
                ratios |= of_bytes
    sys.exit(0 if report("row_level", environment, parts, ratios) else 1)


if __name__ == "__main__":
    parser = options(__doc__, rounds=3)
    parser.add_argument("--sizes", type=float, nargs="+", default=SIZES, help="million rows")
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES, help="0 to 1")
    chosen = parser.parse_args()
    main(chosen.rounds, chosen.sizes, chosen.shares)
