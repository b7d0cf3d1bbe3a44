"""Rejected rows: stored as delivered with their reasons, and published before the accepted
rows.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lakehouse.errors import QuarantineFailed
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.frame_joins import BROADCAST_ROW_LIMIT, having, union_all
from lakehouse.iceberg.metadata.history import read_history
from lakehouse.iceberg.metadata.write_context import Run
from lakehouse.iceberg.metadata.write_result import Published, Quarantined, Refused
from lakehouse.iceberg.read.cleared_rows import without_cleared
from lakehouse.iceberg.read.pinned_frames import read_main
from lakehouse.iceberg.read.version_keys import is_newer_sql, order_sql
from lakehouse.iceberg.write.prepared_frame import DELETED, PreparedFrame
from lakehouse.iceberg.write.quarantine_removals import (
    delivered_in_type,
    leaving,
    not_refused_now,
    removal,
    undone_rows,
)
from lakehouse.iceberg.write.refused_row_keys import OF_SOURCE
from lakehouse.iceberg.write.split_rows import Split
from lakehouse.iceberg.write.write_attempt import Attempt, Write
from lakehouse.tables.quoting import identifier
from lakehouse.tables.table import IcebergTable, Merge

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def quarantine(attempt: Attempt, prepared: PreparedFrame, split: Split) -> Quarantined | None:
    """Merge the rejected rows into the quarantine table, idempotently by source; None if there
    are none.

    Cleared rows are not added again. Rows that an accepted version corrects leave in the same
    commit, if the table declares versions. Other removals are recorded, and applied after the
    publish: if the write is blocked, the rows must not be lost.
    """
    engine, target = attempt.engine, prepared.table.quarantine
    if target is None:
        return None
    prepared = replace(prepared, has_some_keys=attempt.request.reads_keys)
    has_own_keys = attempt.request.reads_keys or prepared.table.overwritten_by
    of_source = OF_SOURCE if has_own_keys else None
    if attempt.scope.is_any:
        attempt.removals.append(leaving(attempt, prepared, split))
    correctable = _correctable_rows(engine, prepared.table)
    undone = undone_rows(prepared.table, attempt.scope)
    is_of_merge = prepared.table.versions is None
    if correctable and is_of_merge:
        attempt.removals.append(_corrected_by_merge(attempt, prepared, split))
    if not split.refused_count and undone is None and (is_of_merge or not correctable):
        return None

    def changes() -> "DataFrame":
        # Few rows in one partition are deduplicated without a shuffle.
        refused = (
            split.refused.coalesce(1)
            if split.refused_count < BROADCAST_ROW_LIMIT
            else split.refused
        )
        rows = prepared.quarantine_rows(refused).selectExpr("*", f"false AS {DELETED}")
        if undone is not None:
            rows = rows.unionByName(_back(prepared, split, undone, rows))
        rows = without_cleared(engine, prepared.table, rows, of_source)
        if is_of_merge or not _correctable_rows(engine, prepared.table):
            return rows
        corrected = _corrected(prepared, split, read_main(engine, target.name))
        return rows.unionByName(removal(prepared.table, corrected))

    outcome = attempt.driver.write_quarantine(
        engine, target, changes, run=Run(attempt.run.run_id)
    )
    if isinstance(outcome, Refused):
        raise _not_taken(attempt.table.name, target.name, outcome)
    new_rows = outcome.inserted_rows if isinstance(outcome, Published) else 0
    return Quarantined(
        target.name,
        split.refused_count,
        new_rows or 0,
        outcome.snapshot_id,
        split.outside_count,
    )


def _not_taken(table: str, target: str, outcome: Refused) -> QuarantineFailed:
    reasons = ", ".join(result.rule.name for result in outcome.reasons)
    return QuarantineFailed(
        f"{target} rejected the quarantined rows of {table}: they break {reasons}. Nothing was"
        " published, and nothing is lost.",
        next_step=(
            f"`lakehouse backfill {table}` recomputes it; if that fails too, please report it."
        ),
    )


def _corrected_by_merge(attempt: Attempt, prepared: PreparedFrame, split: Split) -> "DataFrame":
    """Return the keys of quarantined rows that an accepted row of their key corrects.

    Rows that are rejected now are excluded: the order of rows in one merge is unknown.
    """
    target = prepared.table.quarantine
    assert target is not None
    corrected = _corrected(prepared, split, read_main(attempt.engine, target.name))
    return not_refused_now(prepared, split, corrected)


def _back(
    prepared: PreparedFrame, split: Split, undone: "DataFrame", refused: "DataFrame"
) -> "DataFrame":
    """Return the removed rows that must return: no accepted version corrects them, and they are
    not among the rejected ones.
    """
    rows = undone
    for known in (_corrected(prepared, split, undone), refused):
        rows = rows.join(known.select("_row_key"), "_row_key", "left_anti")
    return rows.selectExpr("*", f"false AS {DELETED}")


def _correctable_rows(engine: Engine, table: IcebergTable) -> int:
    """Return the number of rows that can be corrected: 0 if the table has no version key."""
    if table.quarantine is None or not table.version_key:
        return 0
    main = read_history(engine, table.quarantine.name).main
    return main.rows if main else 0


def _corrected(prepared: PreparedFrame, split: Split, quarantined: "DataFrame") -> "DataFrame":
    """Return the keys of quarantined rows with an accepted version in this write that is not
    older.

    For a merge without versions, any accepted row with the key.
    """
    from pyspark.sql.functions import expr

    table, key = prepared.table, prepared.table.version_key
    assert table.quarantine is not None
    newest = table.versions.newest if table.versions else ()
    # A deleted row corrects nothing.
    rows = split.rows.where(f"NOT {DELETED}") if prepared.deletes else split.rows
    columns = dict.fromkeys((*key, *newest))
    accepted = prepared.accepted(rows).selectExpr(*map(identifier, columns))
    same = " AND ".join(
        f"{delivered_in_type(table, name, 'q')} = a.{identifier(name)}" for name in key
    )
    corrected = having(
        quarantined.alias("q"),
        accepted.alias("a"),
        expr(f"{same} AND NOT {_is_newer(table, newest)}"),
        split.count,
    )
    mode = table.quarantine.write
    assert isinstance(mode, Merge)
    return corrected.select(*mode.on, *mode.prune_by)


def _is_newer(table: IcebergTable, newest: Sequence[str]) -> str:
    """Return the SQL predicate that a quarantined row `q` is newer than an accepted one `a`."""
    if not newest:
        return "false"
    refused = {name: delivered_in_type(table, name, "q") for name in newest}
    accepted = {name: f"a.{identifier(name)}" for name in newest}
    return is_newer_sql(refused, order_sql(accepted))


def leave(
    engine: Engine, table: IcebergTable, run: Run, write: Write, keys: "Sequence[DataFrame]"
) -> None:
    """Remove rows from the quarantine after their write was published."""
    if table.quarantine is None or not keys:
        return
    removed = union_all(keys).dropDuplicates(["_row_key"])
    if not removed.isEmpty():
        take_out(engine, table, run.run_id, write, removed)


def take_out(
    engine: Engine, table: IcebergTable, run_id: str, write: Write, keys: "DataFrame"
) -> None:
    """Remove rows by key from a quarantine, for a finished write of its table."""
    assert table.quarantine is not None
    follows = Run(run_id, follows=True)
    write(engine, table.quarantine, lambda: removal(table, keys), run=follows)
