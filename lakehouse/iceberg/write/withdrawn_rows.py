"""Removal of rows from merged and appended tables after rejections, and on request erasures, in
the inputs.

Overwrites need no removal. For a merge or an append, the function is called on the removed rows
and on the remaining rows; rows that only the removed ones produce are deleted.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.frames.broadcast_joins import with_keys, without_keys
from lakehouse.iceberg.frames.frames import union_all
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.pinned_frames import read
from lakehouse.iceberg.read.withdrawn_deliveries import Withdrawn, rows_withdrawn
from lakehouse.iceberg.values.write_result import Pin
from lakehouse.iceberg.write import stage_statements
from lakehouse.iceberg.write.prepared_frame import BROKEN, DELETED, PreparedFrame, prepare
from lakehouse.iceberg.write.write_attempt import Attempt
from lakehouse.tables.quoting import identifier
from lakehouse.tables.table import SOURCE_COLUMNS, SOURCE_KEY, Append, Merge

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class WithdrawnRows:
    """What a table's function returns for withdrawn rows, and for all remaining rows."""

    rows: "DataFrame"
    remaining: "DataFrame"


def compute_withdrawn(
    attempt: Attempt, compute: "Callable[..., DataFrame]"
) -> WithdrawnRows | None:
    """Compute the rows of rejected deliveries for a merged table; None if its inputs lost none.

    Also for an append that follows erasures; appended rows of a rejected delivery are found by
    their source. A function that reads changed keys removes such rows itself.

    :param compute: the table's function with the suppression filter. Removed rows are computed
        without it, since rows of erased data subjects are needed.
    """
    withdrawn, mode = attempt.fence.withdrawn, attempt.table.write
    applies = isinstance(mode, Merge) or (
        isinstance(mode, Append) and attempt.run.follows_erasures
    )
    if not withdrawn or not applies or attempt.base.is_empty or attempt.request.reads_keys:
        return None
    engine, inputs = attempt.engine, attempt.request.inputs
    # All inputs in full, since an earlier delivery can have provided the same rows.
    remaining = {
        name: _in_full(engine, declared, attempt.fence.pins[name])
        for name, declared in inputs.items()
    }
    rows = union_all(
        attempt.request.compute(
            **_without_the_rest(engine, inputs, remaining, withdrawn, source)
        )
        for source in withdrawn
    )
    return WithdrawnRows(rows, compute(**remaining))


def _in_full(engine: Engine, declared: Input, pinned: Pin) -> "DataFrame":
    """Return all rows of an input once, independent of the run's partitions."""
    frame = read(engine, replace(pinned, since_snapshot_id=None, rows=None))
    return frame.where("false") if declared.outside else frame


def _without_the_rest(
    engine: Engine,
    inputs: Mapping[str, Input],
    remaining: "Mapping[str, DataFrame]",
    withdrawn: Mapping[str, Withdrawn],
    source: str,
) -> "dict[str, DataFrame]":
    """Return inputs with only the removed rows of one source, and all of the others."""
    frames = dict(remaining)
    for name, declared in inputs.items():
        if declared.table not in withdrawn or declared.outside or declared.mode == "as_of":
            continue
        removed = rows_withdrawn(engine, withdrawn[declared.table])
        frames[name] = (
            removed if declared.table == source else remaining[name].unionByName(removed)
        )
    return frames


def with_withdrawn(
    attempt: Attempt, mode: Merge, prepared: PreparedFrame, withdrawn: WithdrawnRows
) -> PreparedFrame:
    """Add deletes to a merge's rows, for keys that no remaining delivery provides."""
    names = [identifier(name) for name in dict.fromkeys((*mode.on, *mode.prune_by))]
    removed = _keys(prepare(attempt.table, withdrawn.rows).evaluated(), names)
    stays = _keys(prepare(attempt.table, withdrawn.remaining).evaluated(), names)
    going = without_keys(removed.dropDuplicates([*mode.on]), stays, mode.on)
    going = without_keys(going, _keys(prepared, names), mode.on)
    return _with_deleted(prepared, going, names)


def without_rejected(attempt: Attempt, mode: Merge, prepared: PreparedFrame) -> PreparedFrame:
    """Add deletes to a merge's rows, for existing rows whose source row is rejected now.

    This requires a table with source columns.
    """
    source = list(SOURCE_COLUMNS)
    if (
        not set(source) <= set(attempt.table.column_names)
        or not attempt.table.quarantining_rules
    ):
        return prepared
    rejected = prepared.frame.where(prepared.rejected_predicate).select(*source)
    names = [identifier(name) for name in dict.fromkeys((*mode.on, *mode.prune_by))]
    existing = attempt.existing().join(rejected, source, "left_semi").selectExpr(*names)
    going = without_keys(existing, _keys(prepared, names), mode.on)
    return _with_deleted(prepared, going, names)


def _with_deleted(
    prepared: PreparedFrame, going: "DataFrame", names: list[str]
) -> PreparedFrame:
    frame = (
        prepared.frame
        if prepared.deletes
        else prepared.frame.selectExpr("*", f"false AS {DELETED}")
    )
    removed = going.selectExpr(*names, f"true AS {DELETED}", f"0L AS {BROKEN}")
    rows = frame.unionByName(removed, allowMissingColumns=True)
    known = prepared.names if prepared.deletes else (*prepared.names, DELETED)
    return replace(prepared, frame=rows, names=known)


def _keys(prepared: PreparedFrame, names: list[str]) -> "DataFrame":
    """Return the keys of accepted rows."""
    return prepared.frame.where(f"NOT {prepared.rejected_predicate}").selectExpr(*names)


def take_out_appended(attempt: Attempt) -> Attempt:
    """Delete the rows of rejected deliveries from an append's branch.

    A delivery that its source contains again is kept.
    """
    if not attempt.fence.withdrawn or not set(SOURCE_KEY) <= set(attempt.table.column_names):
        return attempt
    deliveries = dict.fromkeys(
        delivery
        for withdrawn in attempt.fence.withdrawn.values()
        for delivery in withdrawn.deliveries
    )
    delivery = (
        " OR ".join(
            delivery.deleted_by
            for delivery in deliveries
            if not _is_back(attempt, delivery.predicate)
        )
        or "false"
    )
    if attempt.existing().where(delivery).isEmpty():
        return attempt
    stage_statements.delete(attempt, delivery)
    return attempt.based_on_head()


def take_out_computed(attempt: Attempt, withdrawn: WithdrawnRows) -> Attempt:
    """Delete all rows with the `once_by` key of a removed row from an append's branch.

    A write that reads everything appends the remaining ones again.
    """
    names = [*map(identifier, attempt.table.once_by)]
    if not names:
        return attempt
    keys = _keys(prepare(attempt.table, withdrawn.rows).evaluated(), names)
    # Spark resolves the tables in a MERGE's source again, which can fail.
    removed = attempt.request.keep(keys.distinct())
    if with_keys(attempt.existing(), removed, attempt.table.once_by).isEmpty():
        return attempt
    stage_statements.delete_keys(attempt, removed, attempt.table.once_by)
    return attempt.based_on_head()


def _is_back(attempt: Attempt, predicate: str) -> bool:
    """Whether a source contains a withdrawn delivery again."""
    now = (
        read(attempt.engine, Pin(withdrawn.source, withdrawn.until), predicate)
        for withdrawn in attempt.fence.withdrawn.values()
    )
    return any(not rows.isEmpty() for rows in now)
