"""DataFrames of pinned inputs, filtered to the run's partitions."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.metadata.all_partitions import rows_of
from lakehouse.iceberg.metadata.changed_partitions import changed_values, is_timestamp_column
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import read_history
from lakehouse.iceberg.metadata.table_state import names_at
from lakehouse.iceberg.metadata.write_context import Run
from lakehouse.iceberg.metadata.write_result import Pin
from lakehouse.iceberg.read.changed_rows import keys_of_changed_rows
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.row_version_inputs import EXISTING_OUTSIDE
from lakehouse.iceberg.read.snapshot_rows import rows_at, rows_between
from lakehouse.tables.quoting import identifier, in_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def read(engine: Engine, pinned: Pin, where: str | None = None) -> "DataFrame":
    """Return the DataFrame of a pinned input, with a filter that Iceberg uses to skip files."""
    if pinned.snapshot_id is None:
        # The table has no snapshot yet. If it gets one, this pin is no longer valid.
        frame = engine.spark.table(engine.catalog.sql_name(pinned.table)).where("false")
    elif pinned.is_empty or pinned.rows == 0:
        # Known to be empty, so that Spark can remove its joins.
        frame = rows_at(engine, pinned.table, pinned.snapshot_id).where("false")
    elif pinned.since_snapshot_id is None:
        frame = rows_at(engine, pinned.table, pinned.snapshot_id)
    else:
        frame = rows_between(engine, pinned.table, pinned.since_snapshot_id, pinned.snapshot_id)
    return frame.where(where) if where else frame


def read_main(engine: Engine, table: str) -> "DataFrame":
    """Return the current rows of a table."""
    main = read_history(engine, table).main
    return read(engine, Pin(table, main.snapshot_id if main else None))


def read_inputs(
    engine: Engine,
    inputs: Mapping[str, Input],
    pins: Mapping[str, Pin],
    run: Run,
    target: str,
    affected: Collection[Any] | None = None,
) -> "dict[str, DataFrame]":
    """Return the DataFrames of a write's inputs, each filtered to the run's partitions if
    declared.

    :param affected: partitions with existing versions of the new rows; None if unknown.
    """
    return {
        name: (
            _read_keys(engine, declared, pins[name], target)
            if declared.mode == "changed_keys"
            else read(engine, pins[name], narrowed(declared, run, affected))
        )
        for name, declared in inputs.items()
        if name != EXISTING_OUTSIDE or not _is_empty_outside(declared, run, affected)
    }


def _is_empty_outside(declared: Input, run: Run, affected: Collection[Any] | None) -> bool:
    """Whether an input reads existing rows outside of the run's partitions, and there are none."""
    if declared.mode != "existing_rows" or not declared.outside:
        return False
    partitions = run.partitions
    return (
        affected is not None and partitions is not None and all(map(partitions.has, affected))
    )


def _read_keys(engine: Engine, declared: Input, pinned: Pin, target: str) -> "DataFrame":
    """Return the distinct keys of a `changed_keys` input."""
    keys = [identifier(name) for name in declared.keys]
    now = read(engine, replace(pinned, since_snapshot_id=None, rows=None))
    if pinned.is_empty or pinned.snapshot_id is None:
        return now.where("false").selectExpr(*keys)
    if pinned.since_snapshot_id is None:
        return (
            now.selectExpr(*keys)
            .unionAll(read_main(engine, target).selectExpr(*keys))
            .distinct()
        )
    assert declared.by is not None
    history, loaded = read_history(engine, declared.table), engine.catalog.load(declared.table)
    touched = changed_values(
        loaded, history, pinned.since_snapshot_id, pinned.snapshot_id, declared.by
    )
    names = names_at(loaded, pinned.snapshot_id, pinned.since_snapshot_id)
    by = names[declared.by]
    assert by is not None
    is_timestamp = is_timestamp_column(loaded, declared.by)
    where = rows_of(by, touched, is_timestamp=is_timestamp)
    before = read(engine, Pin(declared.table, pinned.since_snapshot_id), where)
    return keys_of_changed_rows(
        now.where(rows_of(declared.by, touched, is_timestamp=is_timestamp)),
        before,
        names,
        declared.keys,
    )


def narrowed(declared: Input, run: Run, affected: Collection[Any] | None = None) -> str | None:
    """Return the SQL predicate of the rows that a run reads of an input; None for all rows."""
    if not declared.by or not run.partitions:
        return None
    if not declared.outside:
        return run.partitions.predicate(declared.by)
    outside = run.partitions.outside(declared.by)
    if declared.mode != "existing_rows" or affected is None:
        return outside
    return f"({outside} AND {in_values(declared.by, affected)})"
