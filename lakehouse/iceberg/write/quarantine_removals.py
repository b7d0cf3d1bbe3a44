"""Rows that leave the quarantine with a write: reevaluated and accepted rows, and rows that no
longer exist in the sources.

A source row is either in the table or in the quarantine. New rows cannot be in the quarantine
yet, so an incremental write has nothing to check. A write that reads more, for example after a
change of the function, reevaluates each row that it reads; in a partitioned table, the rows in
its partitions and in none.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.frames.broadcast_joins import without_keys
from lakehouse.iceberg.frames.frames import union_all
from lakehouse.iceberg.metadata.snapshots import History, Snapshot, read_history
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.pinned_frames import read, read_main
from lakehouse.iceberg.read.row_version_inputs import has_no_partition
from lakehouse.iceberg.values.write_context import Partitions, Run
from lakehouse.iceberg.values.write_result import Pin, by_table
from lakehouse.iceberg.write.prepared_frame import DELETED, PreparedFrame
from lakehouse.iceberg.write.write_attempt import Attempt, ReevaluationScope
from lakehouse.tables.quoting import identifier
from lakehouse.tables.table import SOURCE_COLUMNS, Append, IcebergTable, Merge, Overwrite

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakehouse.iceberg.write.split_rows import Split

_BY = "__by"
_SOURCE = list(SOURCE_COLUMNS)


def plan_reevaluation(
    engine: Engine,
    table: IcebergTable,
    inputs: Mapping[str, Input],
    pins: Mapping[str, Pin],
    run: Run,
    frames: "Mapping[str, DataFrame]",
) -> ReevaluationScope:
    """Return the rows that a write reevaluates; no Spark if the quarantine is empty."""
    read_here = {
        name: declared for name, declared in inputs.items() if declared.table != table.name
    }
    is_full = bool(read_here) and all(
        pins[name].since_snapshot_id is None for name in read_here
    )
    reads_keys = any(declared.mode == "changed_keys" for declared in read_here.values())
    if table.quarantine is None or (reads_keys and not is_full):
        return ReevaluationScope()
    tracked = {
        name: declared
        for name, declared in read_here.items()
        if set(_SOURCE) <= set(frames[name].columns)
    }
    own = [name for name, declared in tracked.items() if not declared.outside]
    target = read_history(engine, table.name)
    quarantined = read_history(engine, table.quarantine.name)
    unpublished = _unpublished(table, target, quarantined)
    was_left = target.main is None or bool(unpublished)
    rereads = was_left or is_full or any(pins[name].since_snapshot_id is None for name in own)
    if quarantined.is_empty:
        return ReevaluationScope(reads_existing=rereads)
    sources = by_table(pins[name] for name in tracked)
    is_less = run.full_recompute or any(
        _may_have_less(engine, target, pin) for pin in sources.values()
    )
    kept = (
        [read(engine, Pin(pin.table, pin.snapshot_id)) for pin in sources.values()]
        if is_less
        else []
    )
    rows = [frames[name] for name in own] if rereads and is_by_source(table) else []
    is_everything = isinstance(table.write, Merge) and is_full and not run.partitions
    return ReevaluationScope(
        rows=[*rows, *_existing(engine, table, target, quarantined, unpublished)],
        kept=kept,
        is_complete=is_everything or isinstance(table.write, Overwrite),
        partitions=run.partitions if table.overwritten_by and is_full and not tracked else None,
        reads_existing=rereads,
        reads_append=rereads and not is_by_source(table),
        reads_append_in_full=is_full and run.reads_everything and not is_by_source(table),
    )


def _existing(
    engine: Engine,
    table: IcebergTable,
    target: History,
    quarantined: History,
    unpublished: Sequence[Snapshot],
) -> "list[DataFrame]":
    """Return the existing rows that an unpublished run would have rejected.

    A delivered row that was in the quarantine before is left out: other rows were made of it.
    """
    if not unpublished or not target.main or not set(_SOURCE) <= set(table.column_names):
        return []
    rows = read(engine, Pin(table.name, target.main.snapshot_id))
    before = quarantined.snapshots.get(unpublished[-1].parent_id or 0)
    known = read(engine, Pin(quarantined.table, before.snapshot_id if before else None))
    return [rows.join(known.select(*_SOURCE), _SOURCE, "left_anti")]


def is_by_source(table: IcebergTable) -> bool:
    """Whether each row that is read is evaluated; an append can skip rows by other columns."""
    return not isinstance(table.write, Append) or set(table.once_by) <= set(_SOURCE)


def _may_have_less(engine: Engine, target: History, pin: Pin) -> bool:
    since = target.watermark(pin.table)
    if pin.snapshot_id is None or since == pin.snapshot_id:
        return False
    return read_history(engine, pin.table).appends_between(since, pin.snapshot_id) is None


def _unpublished(table: IcebergTable, target: History, quarantined: History) -> list[Snapshot]:
    """Return the quarantine's commits of unpublished runs, such as killed ones, newest first.

    Only commits since the table was last computed count; for a partitioned table, since it was
    last computed from other inputs, as a run only reevaluates its partitions.
    """
    # Erasures belong to no run. Removals after a finished write are excluded, since no commit
    # records them if no row changed.
    commits = [
        (snapshot, snapshot.commit.run_id)
        for snapshot in quarantined.line
        if snapshot.commit and not snapshot.is_erasure and not snapshot.commit.follows
    ]
    if target.main is None:
        return []
    marks = target.main.commit.inputs if target.main.commit else {}
    published = set[str]()
    computed_at = []
    for snapshot in target.line:
        commit = snapshot.commit
        if commit and commit.inputs == marks and commit.kind == "write":
            published.add(commit.run_id)
            computed_at.append(snapshot.committed_at)
    decided_until = min if table.overwritten_by else max
    floor = decided_until(computed_at, default=target.main.committed_at)
    return [
        snapshot
        for snapshot, run_id in commits
        if snapshot.committed_at >= floor and (not run_id or run_id not in published)
    ]


def leaving(attempt: Attempt, prepared: PreparedFrame, split: "Split") -> "DataFrame":
    """Cache the keys of the rows that leave the quarantine, before the publish."""
    table, scope = prepared.table, attempt.scope
    assert table.quarantine is not None
    quarantined = read_main(attempt.engine, table.quarantine.name)
    own = _within(table, attempt.run.partitions, quarantined)
    scopes = [
        *_in_scope(table, scope, own, attempt.existing()),
        *_missing_in_sources(scope, quarantined),
        *_accepted(prepared, split, own),
    ]
    # Rows without a source and outside of the scope cannot be matched.
    keys = union_all(scopes or [_keys(quarantined.where("false"))])
    keys = not_rejected_now(prepared, split, keys)
    return attempt.request.keep(keys.dropDuplicates(["_row_key"]), eager=True)


def not_rejected_now(prepared: PreparedFrame, split: "Split", keys: "DataFrame") -> "DataFrame":
    """Return quarantine keys without those of rows that this write rejects."""
    if not split.rejected_count:
        return keys
    rejected = prepared.quarantine_rows(split.rejected).select("_row_key")
    return keys.join(rejected, "_row_key", "left_anti")


def delivered_in_type(table: IcebergTable, column: str, alias: str = "") -> str:
    """Return SQL that parses a quarantined text as the type of the table's column."""
    raw = f"{alias}.{identifier(column)}" if alias else identifier(column)
    return table.cast_sql(column, raw)


def _within(
    table: IcebergTable, partitions: Partitions | None, quarantined: "DataFrame"
) -> "DataFrame":
    """Return the quarantined rows in a run's partitions, or in none.

    Other rows of the same delivered row can be in partitions outside of the run.
    """
    by = table.overwritten_by
    if by is None or partitions is None:
        return quarantined
    typed = quarantined.selectExpr("*", f"{delivered_in_type(table, by)} AS {_BY}")
    return typed.where(f"{partitions.predicate(_BY)} OR {has_no_partition(partitions, _BY)}")


def _in_scope(
    table: IcebergTable,
    scope: ReevaluationScope,
    quarantined: "DataFrame",
    existing: "DataFrame",
) -> "list[DataFrame]":
    if scope.is_complete:
        return [_keys(quarantined)]
    if scope.partitions:
        return [_keys(quarantined.where(scope.partitions.predicate(_BY)))]
    scopes = [_having(quarantined, rows) for rows in scope.rows]
    if scope.reads_append_in_full:
        scopes.append(_keys(_not_appended(table, quarantined, existing)))
    return scopes


def _not_appended(
    table: IcebergTable, quarantined: "DataFrame", existing: "DataFrame"
) -> "DataFrame":
    """Return the rows without a source whose `once_by` key is not in the table.

    Keys in the table are skipped by the append, so that its result for them is unknown.
    """
    once_by = [
        f"{delivered_in_type(table, name)} AS {identifier(name)}" for name in table.once_by
    ]
    own = [name for name in ("_row_key", "_source_file") if name not in table.once_by]
    existing_keys = existing.selectExpr(*map(identifier, table.once_by)).distinct()
    rows = quarantined.where("_source_file IS NULL").selectExpr(*own, *once_by)
    return without_keys(rows, existing_keys, table.once_by)


def _missing_in_sources(
    scope: ReevaluationScope, quarantined: "DataFrame"
) -> "list[DataFrame]":
    """Return the quarantined rows that are no longer in any source."""
    rest = quarantined.where(" AND ".join(f"{name} IS NOT NULL" for name in _SOURCE))
    for rows in scope.kept:
        rest = rest.join(rows.select(*_SOURCE), _SOURCE, "left_anti")
    return [_keys(rest)] if scope.kept else []


def _accepted(
    prepared: PreparedFrame, split: "Split", quarantined: "DataFrame"
) -> "list[DataFrame]":
    """Return the rows that the write accepts, if it has their source columns."""
    if not set(_SOURCE) <= set(split.rows.columns):
        return []
    stays = f"NOT {prepared.rejected_predicate}" + (
        f" AND NOT {DELETED}" if prepared.deletes else ""
    )
    return [_having(quarantined, split.rows.where(stays))]


def _having(quarantined: "DataFrame", rows: "DataFrame") -> "DataFrame":
    return _keys(quarantined.join(rows.select(*_SOURCE), _SOURCE, "left_semi"))


def _keys(quarantined: "DataFrame") -> "DataFrame":
    return quarantined.select("_row_key", "_source_file")
