"""Where a merged table is cheaper to write with delete files (merge-on-read) than by rewriting
whole files (copy-on-write), and what its reads cost until it is compacted.

Run as `python -m benchmarks.bench_row_level [--rounds N] [--sizes MILLIONS…]`: for each size and
each share of rows that change, merges through the whole write (compared, staged, audited,
published), then a scan of both tables. Its result tells which `row_level` a table should
declare.
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

from benchmarks.bench_write import ORDERS, orders
from benchmarks.harness import Measured, Way, compare, conditions, options, report
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.write_result import Published
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.runtime.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse.tables.table import IcebergTable, Merge

SIZES = (0.1, 1.0)
SHARES = (0.001, 0.01, 0.1, 0.3)
MODES = ("copy-on-write", "merge-on-read")


class Merged:
    """A table of orders that is merged into by its id, with one way to change rows."""

    def __init__(self, engine: Engine, mode: str, rows: int, share: float) -> None:
        name = f"bench.merged_{mode.replace('-', '_')}_{rows}_{int(share * 1000)}"
        self.table: IcebergTable = replace(
            ORDERS,
            name=name,
            write=Merge(on=("id",)),
            row_level=mode,  # type: ignore[arg-type]  # one of MODES
        )
        self.engine, self.rows, self.changed = engine, rows, max(1, int(rows * share))
        self.batches = count()
        write(engine, self.table, lambda: orders(engine, 0, rows))

    def merge(self) -> int:
        """Change a share of the rows, spread over the whole table, others each time."""
        batch = next(self.batches)
        step = self.rows // self.changed
        changed = orders(self.engine, 0, self.rows).where(f"id % {step} = {batch % step}")
        changed = changed.selectExpr(
            *[name for name in self.table.column_names if name != "note"],
            f"'changed {batch}' AS note",
        )
        published = write(self.engine, self.table, lambda: changed)
        assert isinstance(published, Published), published
        return published.updated_rows or 0

    def scan(self) -> str:
        """Read every row."""
        name = self.engine.catalog.sql_name(self.table.name)
        row = self.engine.sql(
            f"SELECT count(1), sum(amount), sum(length(note)) FROM {name}"
        ).first()
        return str(row)


def measure(
    engine: Engine, millions: float, share: float, rounds: int
) -> Iterator[tuple[str, list[Measured]]]:
    """Yield what merges cost, and what a scan costs after each of them."""
    rows = int(millions * 1_000_000)
    tables = {mode: Merged(engine, mode, rows, share) for mode in MODES}
    title = f"{millions:g} million rows, {share:.1%} of them change"
    merges = [Way(mode, table.merge) for mode, table in tables.items()]
    yield f"{title}: a merge", compare(merges, rounds=rounds, warm_ups=1)
    scans = [Way(mode, table.scan, times=3) for mode, table in tables.items()]
    yield f"{title}: a scan after {rounds + 1} merges", compare(scans, rounds=3, warm_ups=1)


def main(rounds: int, millions: Sequence[float]) -> None:
    """Measure each size and share; nothing is promised, a declaration is decided by it."""
    began = conditions()
    parts: dict[str, list[Measured]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        engine = open_engine(replace(Settings.from_env(), home=Path(folder), spark_memory="6g"))
        for size in millions:
            for share in SHARES:
                parts.update(measure(engine, size, share, rounds))
    sys.exit(0 if report("row_level", began, parts) else 1)


if __name__ == "__main__":
    parser = options(__doc__, rounds=3)
    parser.add_argument("--sizes", type=float, nargs="+", default=SIZES, help="million rows")
    chosen = parser.parse_args()
    main(chosen.rounds, chosen.sizes)
