"""Copy-on-write or merge-on-read: the mode that a merged table gets if it declares none."""

from dataclasses import dataclass

from lakehouse.tables.declaration import RowLevel, TableDeclaration
from lakehouse.tables.table_properties import COPY_ON_WRITE, MERGE_ON_READ, MERGE_PROPERTY
from lakehouse.tables.write_modes import Merge

LARGE_MIB = 16
"""The table size above which delete files pay off. Five merges of 1 %, with two scans after
each and a compaction, took 1.2 times as long with them at 5 MB, 0.7 times at 50 MB and 0.45
times at 248 MB; of 10 %, 0.9, 0.85 and 0.7 times (benchmarks/results/row_level.md). The mode
changes back at half of this size, to avoid oscillation.
"""
MOST_CHANGED = 0.2
"""The share of changed and already deleted rows above which rewriting files is cheaper. At 10
%, delete files took 0.7 to 0.9 times as long; at 30 %, 1.1 to 1.2 times, at each size.
"""
VECTORS_SINCE = 3
"""The format version whose delete files are deletion vectors, which are removed with their data
file. In earlier versions, Iceberg 1.12 retains delete files when copy-on-write replaces their
data file, and the snapshot summary still counts their rows.
"""


@dataclass(frozen=True)
class ChosenRowLevel:
    """The chosen row-level mode and the reason."""

    mode: RowLevel
    reason: str

    def __str__(self) -> str:
        return f"{self.mode}, as {self.reason}"


def is_chosen(table: TableDeclaration) -> bool:
    """Return whether the mode is chosen automatically: the table is merged and declares none."""
    is_declared = table.row_level is not None or MERGE_PROPERTY in table.properties
    return isinstance(table.write, Merge) and not is_declared


def choose_for_table(
    current: str | None, format_version: int, size_bytes: int, deleted_rows: int
) -> ChosenRowLevel:
    """Choose the mode for merges that change few rows, by size and deleted rows."""
    if format_version < 2:
        return ChosenRowLevel(COPY_ON_WRITE, "format version 1 has no delete files")
    if current == MERGE_ON_READ and deleted_rows:
        return ChosenRowLevel(MERGE_ON_READ, "it has delete files that upkeep is to compact")
    least_mib = LARGE_MIB // 2 if current == MERGE_ON_READ else LARGE_MIB
    if size_bytes < least_mib * 1024**2:
        return ChosenRowLevel(COPY_ON_WRITE, f"its files have less than {least_mib} MiB")
    return ChosenRowLevel(MERGE_ON_READ, f"its files have {least_mib} MiB or more")


def choose_for_merge(
    current: str, format_version: int, rows: int, deleted_rows: int, changed_rows: int
) -> ChosenRowLevel:
    """Choose the mode of one merge. `rows` are all rows in the files, including `deleted_rows`,
    which delete files remove.
    """
    if current != MERGE_ON_READ:
        return ChosenRowLevel(COPY_ON_WRITE, "is usual for a table of its size")
    share = (deleted_rows + changed_rows) / max(rows, 1)
    changed = f"{share:.1%} of the rows in its files are changed"
    if share <= MOST_CHANGED:
        return ChosenRowLevel(MERGE_ON_READ, f"{changed}, no more than {MOST_CHANGED:.0%}")
    if deleted_rows and format_version < VECTORS_SINCE:
        reason = "it has delete files that would outlive their data files"
        return ChosenRowLevel(MERGE_ON_READ, reason)
    return ChosenRowLevel(COPY_ON_WRITE, f"{changed}, more than {MOST_CHANGED:.0%}")
