"""Iceberg table properties and row-level mode, derived from a declaration."""

from dataclasses import dataclass

from lakehouse.tables import types
from lakehouse.tables.declaration import RowLevel, TableDeclaration
from lakehouse.tables.type_promotion import leaf_paths
from lakehouse.tables.write_modes import Merge

COPY_ON_WRITE: RowLevel = "copy-on-write"
MERGE_ON_READ: RowLevel = "merge-on-read"
DELETE_PROPERTY, MERGE_PROPERTY = "write.delete.mode", "write.merge.mode"
ROW_LEVEL_PROPERTIES = (DELETE_PROPERTY, MERGE_PROPERTY, "write.update.mode")
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


ROW_GROUP_BYTES = 16 * 1024**2
"""One task reads a row group, and Iceberg gives a task at least 16 MiB. With the default of 128
MiB, one core reads an entire file. With this size, a scan of a million rows after upkeep takes
0.7 times as long, and files are 0.1 % larger. PyIceberg, which writes run logs, warns that it
ignores the setting.
"""


def table_properties(
    table: TableDeclaration, row_level: RowLevel = COPY_ON_WRITE
) -> dict[str, str]:
    """Return the table properties; declared ones and `row_level` take precedence."""
    properties = {
        "format-version": str(table.format_version),
        "write.format.default": table.file_format,
        "write.target-file-size-bytes": str(table.target_file_mb * 1024 * 1024),
        **dict.fromkeys(ROW_LEVEL_PROPERTIES, table.row_level or row_level),
        "write.summary.partition-limit": "100",
        # Without this setting Spark uses fanout for tables without a sort order.
        "write.spark.fanout.enabled": str(table.fanout).lower(),
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": str(table.upkeep_policy.metadata_files),
    }
    if table.file_format != "avro":
        properties[f"write.{table.file_format}.compression-codec"] = "zstd"
    if (
        table.file_format == "parquet"
        and "write.parquet.compression-codec" not in table.properties
    ):
        # Measured with five million transactions: bronze is 4 % smaller than at level 3, the
        # default, silver 0.4 % larger, and writing is faster.
        properties["write.parquet.compression-level"] = "1"
    if table.file_format == "parquet" and not table.is_log_of_runs:
        properties["write.parquet.row-group-size-bytes"] = str(ROW_GROUP_BYTES)
    for column in table.bloom_filters:
        properties[f"write.parquet.bloom-filter-enabled.column.{column}"] = "true"
    for column in sorted(table.personal_columns):
        properties |= dict.fromkeys(metrics_properties(table, column), "none")
    if table.owner:
        properties["lakehouse.owner"] = table.owner
    return properties | dict(table.properties)


def metrics_properties(table: TableDeclaration, column: str) -> list[str]:
    """Return the properties that set the metrics mode of a column: one per leaf field."""
    paths = leaf_paths(types.parse(table.column(column).type), column)
    return [f"write.metadata.metrics.column.{path}" for path in paths]
