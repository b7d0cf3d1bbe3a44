"""What leaves the quarantine once a person has published a candidate that rules had refused.

A refused run takes nothing out of the quarantine, so that rows which hold again stand there and
in its candidate. Once that is published they are in the table.
"""

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
from lakehouse.iceberg.write.refused_row_keys import OF_SOURCE
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.quoting import literal
from lakehouse.tables.table import SOURCE_COLUMNS, IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SOURCE = list(SOURCE_COLUMNS)


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
        came = _came(engine, overridden)
        if came is not None:
            keys = _standing(engine, quarantine, overridden).join(came, _SOURCE, "left_semi")
            gone = keys.select("_row_key", "_source_file")
            leave(engine, table, Run(overridden.run_id), write, [gone])


def _came(engine: Engine, overridden: Overridden) -> "DataFrame | None":
    """Return the sources of the rows that a table did not have before; None where it does not
    keep them.
    """
    name, before_id = overridden.table, overridden.before_snapshot_id
    snapshot_ids = [overridden.snapshot_id, *([before_id] if before_id is not None else [])]
    frames = [rows_at(engine, name, snapshot_id) for snapshot_id in snapshot_ids]
    if not all(set(_SOURCE) <= set(frame.columns) for frame in frames):
        return None
    came, *before = (frame.select(*_SOURCE) for frame in frames)
    return came.join(before[0], _SOURCE, "left_anti") if before else came


def _standing(engine: Engine, quarantine: IcebergTable, overridden: Overridden) -> "DataFrame":
    """Return the rows of a quarantine that stood there before the candidate's run, and that this
    run did not refuse again.

    That is known of one that was alone of its source, and of any where the run refused one alone,
    which tells its key.
    """
    begun = begun_at(overridden.branch)
    assert begun is not None
    is_before = f"_quarantined_at < {literal(begun)}"
    of_source = f"OVER (PARTITION BY {', '.join(_SOURCE)})"
    rows = read_main(engine, quarantine.name).selectExpr(
        "*",
        f"count(1) {of_source} AS __rows",
        f"count_if(NOT {is_before}) {of_source} AS __refused",
        f"bool_or(NOT {is_before} AND _row_key = {OF_SOURCE}) {of_source} AS __refused_alone",
    )
    was_alone = f"__rows = 1 AND _row_key = {OF_SOURCE}"
    return rows.where(f"{is_before} AND ({was_alone} OR __refused = 1 AND __refused_alone)")
