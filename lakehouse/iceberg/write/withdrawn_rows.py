"""How a write follows what rejections took out of its inputs, and in a run for it erasures: rows
that no other delivery gives go.

What is overwritten needs nothing for it. A merge and an append know nothing of what is not
there any more: so the function is asked what it makes of the rows that went, and what of those
that are left.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.frame_joins import together, with_keys, without_keys
from lakehouse.iceberg.metadata.write_result import Pin
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.pinned_frames import read
from lakehouse.iceberg.read.withdrawn_deliveries import Withdrawn, rows_withdrawn
from lakehouse.iceberg.write import stage
from lakehouse.iceberg.write.prepared_frame import BROKEN, DELETED, PreparedFrame, prepare
from lakehouse.iceberg.write.write_attempt import Attempt
from lakehouse.tables.quoting import identifier
from lakehouse.tables.table import SOURCE_COLUMNS, SOURCE_KEY, Append, Merge

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Following:
    """What the function of a table makes of the rows that went, and of all that are left."""

    went: "DataFrame"
    stays: "DataFrame"


def following(
    attempt: Attempt,
    inputs: Mapping[str, Input],
    compute: "Callable[..., DataFrame]",
    of_everybody: "Callable[..., DataFrame]",
) -> Following | None:
    """Ask the function of a merged table about rejected deliveries; None where none was taken
    out of its inputs.

    So it is asked of a table that is appended to, where it follows erasures; an appended row of
    a rejected delivery is known by its source. A function that is told the changed keys, removes
    what is gone by itself.

    :param of_everybody: the same function, which leaves nobody out who is gone: rows of theirs
        went.
    """
    withdrawn, mode = attempt.withdrawn, attempt.table.write
    is_asked = isinstance(mode, Merge) or (
        isinstance(mode, Append) and attempt.run.follows_erasures
    )
    if (
        not withdrawn
        or not is_asked
        or attempt.base.is_empty
        or any(declared.mode == "changed_keys" for declared in inputs.values())
    ):
        return None
    engine = attempt.engine
    # All of them in full, since another delivery may have given the same long ago.
    stays = {
        name: _in_full(engine, declared, attempt.pins[name])
        for name, declared in inputs.items()
    }
    went = together(
        of_everybody(**_without_the_rest(engine, inputs, stays, withdrawn, source))
        for source in withdrawn
    )
    return Following(went, compute(**stays))


def _in_full(engine: Engine, declared: Input, pinned: Pin) -> "DataFrame":
    """Return all rows of an input, whatever partitions the run has: those outside of them too,
    and once.
    """
    frame = read(engine, replace(pinned, since_snapshot_id=None, rows=None))
    return frame.where("false") if declared.outside else frame


def _without_the_rest(
    engine: Engine,
    inputs: Mapping[str, Input],
    stays: "Mapping[str, DataFrame]",
    withdrawn: Mapping[str, Withdrawn],
    source: str,
) -> "dict[str, DataFrame]":
    """Return the inputs with what went of one source alone, and all that the others have and
    had.
    """
    frames = dict(stays)
    for name, declared in inputs.items():
        if declared.table not in withdrawn or declared.outside or declared.mode == "as_of":
            continue
        went = rows_withdrawn(engine, withdrawn[declared.table])
        frames[name] = went if declared.table == source else stays[name].unionByName(went)
    return frames


def with_removed(
    attempt: Attempt, mode: Merge, prepared: PreparedFrame, following: Following
) -> PreparedFrame:
    """Return a merge's rows, and with them those that shall go: no delivery that is left
    gives their key.
    """
    names = [identifier(name) for name in dict.fromkeys((*mode.on, *mode.prune_by))]
    went, stays, kept = (
        _keys(rows, names) for rows in (*_evaluated(attempt, following), prepared)
    )
    going = without_keys(went.dropDuplicates([*mode.on]), stays, mode.on)
    going = without_keys(going, kept, mode.on)
    return _with_deleted(prepared, going, names)


def without_refused(attempt: Attempt, mode: Merge, prepared: PreparedFrame) -> PreparedFrame:
    """Return a merge's rows, and with them those that shall go: they stand from a source row
    that is refused now.

    Of a table that keeps the source of its rows; of others nobody can tell.
    """
    source = list(SOURCE_COLUMNS)
    if (
        not set(source) <= set(attempt.table.column_names)
        or not attempt.table.quarantining_rules
    ):
        return prepared
    refused = prepared.frame.where(prepared.refused_predicate).select(*source)
    names = [identifier(name) for name in dict.fromkeys((*mode.on, *mode.prune_by))]
    existing = attempt.existing().join(refused, source, "left_semi").selectExpr(*names)
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


def _evaluated(attempt: Attempt, following: Following) -> tuple[PreparedFrame, PreparedFrame]:
    return (
        prepare(attempt.table, following.went).evaluated(),
        prepare(attempt.table, following.stays).evaluated(),
    )


def _keys(prepared: PreparedFrame, names: list[str]) -> "DataFrame":
    """Return the keys that a candidate gives: a row that is refused gives none."""
    return prepared.frame.where(f"NOT {prepared.refused_predicate}").selectExpr(*names)


def take_out_appended(attempt: Attempt) -> Attempt:
    """Delete the rows of rejected deliveries from an append's branch; return the attempt as it
    goes on from there.

    A delivery that came back to its source stays.
    """
    if not attempt.withdrawn or not set(SOURCE_KEY) <= set(attempt.table.column_names):
        return attempt
    gone = dict.fromkeys(
        its for withdrawn in attempt.withdrawn.values() for its in withdrawn.deliveries
    )
    its = (
        " OR ".join(
            delivery.deleted_by
            for delivery in gone
            if not _is_back(attempt, delivery.predicate)
        )
        or "false"
    )
    if attempt.existing().where(its).isEmpty():
        return attempt
    stage.delete(attempt, its)
    head = attempt.history().head(attempt.branch)
    assert head is not None
    return replace(attempt, base=head)


def take_out_computed(attempt: Attempt, following: Following) -> Attempt:
    """Delete from an append's branch all rows that happened once with some that went, by
    `once_by`; return the attempt as it goes on from there.

    What is left of them is appended again by a write that reads everything.
    """
    names = [*map(identifier, attempt.table.once_by)]
    if not names:
        return attempt
    keys = _keys(prepare(attempt.table, following.went).evaluated(), names)
    # Spark resolves the tables in a MERGE's source once more, and need not be able to.
    went = attempt.keep(keys.distinct())
    if with_keys(attempt.existing(), went, attempt.table.once_by).isEmpty():
        return attempt
    stage.delete_keys(attempt, went, attempt.table.once_by)
    head = attempt.history().head(attempt.branch)
    assert head is not None
    return replace(attempt, base=head)


def _is_back(attempt: Attempt, predicate: str) -> bool:
    """Whether a source has a delivery, that was taken out of it, again."""
    now = (
        read(attempt.engine, Pin(withdrawn.source, withdrawn.until), predicate)
        for withdrawn in attempt.withdrawn.values()
    )
    return any(not rows.isEmpty() for rows in now)
