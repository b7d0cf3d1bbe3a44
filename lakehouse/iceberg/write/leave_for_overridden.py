"""What leaves the quarantine once a person has published a candidate that rules had refused.

A refused run takes nothing out of the quarantine, so that rows which hold again stand there and
in its candidate. Once that is published they are in the table.
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
    """Take out of the quarantine of a table the rows that came into it with a candidate.

    Nothing is done where the table was written since: that write has decided anew. What the
    candidate's run refused stays; so does what it may have refused, which is not known of several
    rows that a function made of a delivered one.
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
        standing, gone = _standing(engine, table, overridden), []
        # What lies in no partition, as every row of a table without any, is known by its source.
        came = _came(engine, overridden, _SOURCE)
        if came is not None:
            of_source = standing.where(f"{_PARTITION} IS NULL")
            gone.append(of_source.join(came, _SOURCE, "left_semi"))
        by = table.overwritten_by
        if came is not None and by is not None:
            partition = f"CAST({identifier(by)} AS STRING) AS {_PARTITION}"
            came = _came(engine, overridden, [*_SOURCE, partition])
            assert came is not None
            gone.append(standing.join(came, [*_SOURCE, _PARTITION], "left_semi"))
        keys = [rows.select("_row_key", "_source_file") for rows in gone]
        leave(engine, table, Run(overridden.run_id), write, keys)


def _came(engine: Engine, overridden: Overridden, terms: Sequence[str]) -> "DataFrame | None":
    """Return what tells the rows that a table did not have before; None where it does not keep
    their sources.
    """
    name, before_id = overridden.table, overridden.before_snapshot_id
    snapshot_ids = [overridden.snapshot_id, *([before_id] if before_id is not None else [])]
    frames = [rows_at(engine, name, snapshot_id) for snapshot_id in snapshot_ids]
    if not all(set(_SOURCE) <= set(frame.columns) for frame in frames):
        return None
    came, *before = (frame.selectExpr(*terms) for frame in frames)
    return came.join(before[0], came.columns, "left_anti") if before else came


def _standing(engine: Engine, table: IcebergTable, overridden: Overridden) -> "DataFrame":
    """Return the rows of a table's quarantine that stood there before the candidate's run, each
    with its partition, and that this run did not refuse again.

    That is known of one that was alone of its source in its partition, or of all its source where
    it has no partition, and of any where the run refused one alone, which tells its key.
    """
    begun, quarantine, by = begun_at(overridden.branch), table.quarantine, table.overwritten_by
    assert begun is not None
    assert quarantine is not None
    is_before = f"_quarantined_at < {literal(begun)}"
    partition = delivered_in_type(table, by) if by else "NULL"
    is_alone = f"_row_key IN ({OF_SOURCE}, {of_source_in(_PARTITION)})"
    of_any = f"count(1) OVER (PARTITION BY {', '.join(_SOURCE)})"
    of_source = f"OVER (PARTITION BY {', '.join(_SOURCE)}, {_PARTITION})"
    rows = (
        read_main(engine, quarantine.name)
        .selectExpr("*", f"CAST({partition} AS STRING) AS {_PARTITION}")
        .selectExpr(
            "*",
            f"if({_PARTITION} IS NULL, {of_any}, count(1) {of_source}) AS __rows",
            f"count_if(NOT {is_before}) {of_source} AS __refused",
            f"bool_or(NOT {is_before} AND {is_alone}) {of_source} AS __refused_alone",
        )
    )
    was_alone = f"__rows = 1 AND {is_alone}"
    return rows.where(f"{is_before} AND ({was_alone} OR __refused = 1 AND __refused_alone)")
