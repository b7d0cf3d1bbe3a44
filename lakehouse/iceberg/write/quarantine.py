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
)
from lakehouse.iceberg.write.split_rows import Split
from lakehouse.iceberg.write.write_attempt import Attempt, Write
from lakehouse.tables.quoting import identifier
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def quarantine(attempt: Attempt, prepared: PreparedFrame, split: Split) -> Quarantined | None:
    """Merge the rejected rows into the quarantine table, idempotently by source; None if there
    are none.

    Cleared rows are not added again. Rows that leave the quarantine are only collected: they
    are removed after the publish, since they must not be lost if the write is blocked.
    """
    engine, target = attempt.engine, prepared.table.quarantine
    if target is None:
        return None
    prepared = replace(prepared, has_some_keys=attempt.request.reads_keys)
    if attempt.scope.is_any:
        attempt.removals.append(leaving(attempt, prepared, split))
    if _has_correctable_rows(engine, prepared.table):
        attempt.removals.append(_corrected(engine, prepared, split))
    if not split.refused_count:
        return None

    def changes() -> "DataFrame":
        # Few rows in one partition are deduplicated without a shuffle.
        refused = (
            split.refused.coalesce(1)
            if split.refused_count < BROADCAST_ROW_LIMIT
            else split.refused
        )
        rows = prepared.quarantine_rows(refused).selectExpr("*", f"false AS {DELETED}")
        return without_cleared(engine, prepared.table, rows)

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


def _has_correctable_rows(engine: Engine, table: IcebergTable) -> bool:
    """Whether the quarantine has rows that an accepted row of their version key can correct."""
    if table.quarantine is None or not table.version_key:
        return False
    main = read_history(engine, table.quarantine.name).main
    return bool(main and main.rows)


def _corrected(engine: Engine, prepared: PreparedFrame, split: Split) -> "DataFrame":
    """Return the keys of quarantined rows with an accepted version in this write that is not
    older, and that this write does not reject again.

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
        read_main(engine, table.quarantine.name).alias("q"),
        accepted.alias("a"),
        expr(f"{same} AND NOT {_is_newer(table, newest)}"),
        split.count,
    )
    return not_refused_now(prepared, split, corrected.select("_row_key", "_source_file"))


def _is_newer(table: IcebergTable, newest: Sequence[str]) -> str:
    """Return the SQL predicate that a quarantined row `q` is newer than an accepted one `a`."""
    if not newest:
        return "false"
    refused = {name: delivered_in_type(table, name, "q") for name in newest}
    accepted = {name: f"a.{identifier(name)}" for name in newest}
    return is_newer_sql(refused, order_sql(accepted))


def keys_to_remove(attempt: Attempt) -> "DataFrame | None":
    """Return the keys of the rows that leave the quarantine because of a write, if any."""
    if not attempt.removals:
        return None
    keys = union_all(frame.select("_row_key", "_source_file") for frame in attempt.removals)
    keys = keys.dropDuplicates(["_row_key"])
    return None if keys.isEmpty() else keys


def take_out(
    engine: Engine, table: IcebergTable, run_id: str, write: Write, keys: "DataFrame"
) -> None:
    """Remove rows by key from a quarantine, for a finished write of its table."""
    assert table.quarantine is not None
    follows = Run(run_id, follows=True)
    write(engine, table.quarantine, lambda: removal(table, keys), run=follows)
