"""Rows that users cleared from a quarantine, by their keys, without their values.

They count as accounted for, and do not return when they are rejected again.
"""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.commit_record import PREFIX
from lakehouse.iceberg.read.pinned_frames import read_main
from lakehouse.tables.table import SOURCE_COLUMNS, Column, IcebergTable, Merge

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BY, _WHY, _ROWS = f"{PREFIX}cleared-by", f"{PREFIX}cleared-for", f"{PREFIX}cleared-rows"
_CLEARING = ("cleared_at", "cleared_by", "why")


@dataclass(frozen=True)
class Clearing:
    """Number of rows that a user cleared in one operation, and why."""

    at: datetime
    by: str
    why: str
    rows: int

    def to_summary(self) -> dict[str, str]:
        """Return the snapshot properties of the commit that removes the rows."""
        return {_BY: self.by, _WHY: self.why, _ROWS: str(self.rows)}


def cleared_table(table: IcebergTable) -> IcebergTable:
    """Return the table of rows that were cleared from the quarantine of another table."""
    quarantine = table.quarantine
    assert quarantine is not None
    same = ("_row_key", "_reasons", *SOURCE_COLUMNS)
    return IcebergTable(
        name=f"{quarantine.name}_cleared",
        comment=f"Rows that people cleared from {quarantine.name}, without their values.",
        columns=[
            *map(quarantine.column, same),
            Column("cleared_at", "timestamp", "When the row was cleared."),
            Column("cleared_by", "string", "Who cleared it."),
            Column("why", "string", "Why it was cleared."),
        ],
        write=Merge(on=("_row_key",), prune_by=("_source_file",)),
        owner=table.owner,
    )


def read_cleared(engine: Engine, table: IcebergTable) -> "DataFrame | None":
    """Return the rows that were cleared from a table's quarantine; None if there are none."""
    if table.quarantine is None:
        return None
    name = cleared_table(table).name
    return read_main(engine, name) if engine.catalog.has(name) else None


def without_cleared(engine: Engine, table: IcebergTable, rows: "DataFrame") -> "DataFrame":
    """Return rows for a table's quarantine, without those that were cleared from it."""
    cleared = read_cleared(engine, table)
    if cleared is None:
        return rows
    return rows.join(cleared.select("_row_key"), "_row_key", "left_anti")


def clearings(engine: Engine, table: IcebergTable) -> list[Clearing]:
    """Return the clearings of a table's quarantine, oldest first; no JVM."""
    import pyarrow as pa

    name = cleared_table(table).name
    if not engine.catalog.has(name):
        return []
    rows = engine.catalog.load(name).scan(selected_fields=_CLEARING).to_arrow_batch_reader()
    cleared = Counter[tuple[datetime, str, str]]()
    for batch in rows:
        counts = pa.table(batch).group_by(list(_CLEARING)).aggregate([([], "count_all")])
        for row in counts.to_pylist():
            cleared[row["cleared_at"], row["cleared_by"], row["why"]] += row["count_all"]
    clearings_by_row = [
        Clearing(at, by, why, count) for (at, by, why), count in cleared.items()
    ]
    return sorted(clearings_by_row, key=lambda clearing: clearing.at)
