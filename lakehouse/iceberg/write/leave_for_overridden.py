"""Removals from the quarantine after a user published a blocked candidate.

A blocked run removes nothing from the quarantine, so corrected rows are in the quarantine and
in the candidate. After its publish they are in the table.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakehouse.iceberg.commit.branch import begun_at
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.iceberg.commit.publish_refused import Overridden
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import read_history
from lakehouse.iceberg.metadata.write_context import Run
from lakehouse.iceberg.read.pinned_frames import read_main
from lakehouse.iceberg.read.snapshot_rows import rows_at
from lakehouse.iceberg.write.quarantine import leave
from lakehouse.iceberg.write.quarantine_removals import delivered_in_type
from lakehouse.iceberg.write.refused_row_keys import OF_SOURCE, of_source_in
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.quoting import identifier, literal
from lakehouse.tables.table import SOURCE_COLUMNS, IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SOURCE = list(SOURCE_COLUMNS)
_PARTITION = "__partition"


def leave_for_overridden(engine: Engine, table: IcebergTable, overridden: Overridden) -> None:
    """Remove the rows of a published candidate from a table's quarantine.

    Nothing is removed if the table was written since, since that write has evaluated the rows
    again. Rows that the candidate's run rejected stay. So do rows that it can have rejected: if
    a function makes several rows of a delivered one, this is not known.
    """
    quarantine = table.quarantine
    if quarantine is None or not engine.catalog.has(quarantine.name):
        return
    with table_lock(engine, table.name):
        main = read_history(engine, table.name).main
        if main is None or main.snapshot_id != overridden.snapshot_id:
            return
        if read_history(engine, quarantine.name).is_empty:
            return
        remaining, removed = _remaining(engine, table, overridden), []
        # Rows in no partition are matched by their source.
        added = _added_rows(engine, overridden, _SOURCE)
        if added is not None:
            of_source = remaining.where(f"{_PARTITION} IS NULL")
            removed.append(of_source.join(added, _SOURCE, "left_semi"))
        by = table.overwritten_by
        if added is not None and by is not None:
            partition = f"CAST({identifier(by)} AS STRING) AS {_PARTITION}"
            added = _added_rows(engine, overridden, [*_SOURCE, partition])
            assert added is not None
            removed.append(remaining.join(added, [*_SOURCE, _PARTITION], "left_semi"))
        keys = [rows.select("_row_key", "_source_file") for rows in removed]
        leave(engine, table, Run(overridden.run_id), write, keys)


def _added_rows(
    engine: Engine, overridden: Overridden, terms: Sequence[str]
) -> "DataFrame | None":
    """Return the keys of rows that a publish added to a table; None if the table has no source
    columns.
    """
    name, before_id = overridden.table, overridden.before_snapshot_id
    snapshot_ids = [overridden.snapshot_id, *([before_id] if before_id is not None else [])]
    frames = [rows_at(engine, name, snapshot_id) for snapshot_id in snapshot_ids]
    if not all(set(_SOURCE) <= set(frame.columns) for frame in frames):
        return None
    added, *before = (frame.selectExpr(*terms) for frame in frames)
    return added.join(before[0], added.columns, "left_anti") if before else added


def _remaining(engine: Engine, table: IcebergTable, overridden: Overridden) -> "DataFrame":
    """Return the rows that were in a table's quarantine before the candidate's run and that it
    did not reject again, with their partition.

    This is known for a row that is the only one of its source in its partition (or of its
    source, if it has no partition), and for any row if the run rejected exactly one, whose key
    is then known.
    """
    begun, quarantine, by = begun_at(overridden.branch), table.quarantine, table.overwritten_by
    assert begun is not None
    assert quarantine is not None
    is_before = f"_quarantined_at < {literal(begun)}"
    partition = delivered_in_type(table, by) if by else "NULL"
    is_only_one = f"_row_key IN ({OF_SOURCE}, {of_source_in(_PARTITION)})"
    of_any = f"count(1) OVER (PARTITION BY {', '.join(_SOURCE)})"
    of_source = f"OVER (PARTITION BY {', '.join(_SOURCE)}, {_PARTITION})"
    rows = (
        read_main(engine, quarantine.name)
        .selectExpr("*", f"CAST({partition} AS STRING) AS {_PARTITION}")
        .selectExpr(
            "*",
            f"if({_PARTITION} IS NULL, {of_any}, count(1) {of_source}) AS __rows",
            f"count_if(NOT {is_before}) {of_source} AS __refused",
            f"bool_or(NOT {is_before} AND {is_only_one}) {of_source} AS __refused_alone",
        )
    )
    was_only_one = f"__rows = 1 AND {is_only_one}"
    return rows.where(f"{is_before} AND ({was_only_one} OR __refused = 1 AND __refused_alone)")
