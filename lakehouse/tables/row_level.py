"""How a merged table changes rows where its declaration does not say; pure.

By copy-on-write each file that holds a changed row is written anew. By merge-on-read the changed
rows are written, with delete files that say which rows they replace; each reader applies these
until upkeep has compacted the table. benchmarks/bench_row_level.py measures both.
"""

from dataclasses import dataclass

from lakehouse.tables.declaration import RowLevel, TableDeclaration
from lakehouse.tables.write_modes import Merge

COPY_ON_WRITE: RowLevel = "copy-on-write"
MERGE_ON_READ: RowLevel = "merge-on-read"
DELETE_PROPERTY, MERGE_PROPERTY = "write.delete.mode", "write.merge.mode"
ROW_LEVEL_PROPERTIES = (DELETE_PROPERTY, MERGE_PROPERTY, "write.update.mode")
LARGE_MIB = 16
"""Size of a table from which on delete files pay. Five merges of 1 %, with two scans after each
and a compaction, took 1.2 times as long with them at 5 MB, 0.7 times at 50 MB and 0.45 times at
248 MB; of 10 %, 0.9, 0.85 and 0.7 times (benchmarks/results/row_level.md). It stays so until it
has half of that, so that a table of about that size does not go to and fro.
"""
MOST_CHANGED = 0.2
"""Share of a table's rows that a merge changes, with those that delete files take off already,
above which whole files are cheaper: of 10 % delete files took 0.7 to 0.9 times as long, of 30 %
1.1 to 1.2 times, at each size.
"""
VECTORS_SINCE = 3
"""Format version whose delete files, deletion vectors, go with the data file that they are of.
Before, Iceberg 1.12 leaves them when copy-on-write replaces that file, and the snapshot's summary
goes on counting the rows that they delete.
"""


@dataclass(frozen=True)
class ChosenRowLevel:
    """How rows are changed, and why so."""

    mode: RowLevel
    reason: str

    def __str__(self) -> str:
        return f"{self.mode}, as {self.reason}"


def is_chosen(table: TableDeclaration) -> bool:
    """Whether it is chosen how a table changes rows: it is merged, and declares nothing."""
    is_declared = table.row_level is not None or MERGE_PROPERTY in table.properties
    return isinstance(table.write, Merge) and not is_declared


def choose_for_table(
    current: str | None, format_version: int, size_bytes: int, deleted_rows: int
) -> ChosenRowLevel:
    """Choose how a table changes rows: whatever writes it, and as long as a merge does not
    change much of it.

    :param current: how it changes rows now.
    :param size_bytes: of its data and delete files.
    :param deleted_rows: those that delete files take off.
    """
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
    """Choose how one merge changes rows.

    :param current: how the table does.
    :param rows: all that are in the table's files, with the `deleted_rows` among them that
        delete files take off.
    :param changed_rows: those that the merge updates or deletes.
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
