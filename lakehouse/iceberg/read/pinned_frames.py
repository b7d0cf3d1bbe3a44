"""DataFrames of pinned inputs, filtered to the run's partitions."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.frames.pyspark_internals import make_active
from lakehouse.iceberg.metadata.partition_metadata import changed_values, is_timestamp_column
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.metadata.table_state import names_at
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.row_version_inputs import EXISTING_OUTSIDE
from lakehouse.iceberg.values.value_ranges import rows_of
from lakehouse.iceberg.values.write_context import Run
from lakehouse.iceberg.values.write_result import Pin
from lakehouse.tables.quoting import identifier, in_values, json_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_COUNT, _HASH = "__counted", "__hash"
_NESTED = ("struct", "array", "map")


def keys_of_changed_rows(
    now: "DataFrame", before: "DataFrame", names: Mapping[str, str | None], keys: Sequence[str]
) -> "DataFrame":
    """Return the distinct keys of added, removed and changed rows, by a 64-bit hash of all
    columns.

    :param names: for each column of `now`, its name in `before`; None if it was missing there.
    :param keys: columns of `now`.
    """
    types_now, types_before = dict(now.dtypes), dict(before.dtypes)
    is_nested = {
        name: (
            types_now[name].startswith(_NESTED)
            or bool(then and types_before[then].startswith(_NESTED))
        )
        for name, then in names.items()
    }
    sides = [
        _with_counts(now, {name: name for name in names}, types_now, is_nested, keys, 1),
        _with_counts(before, names, types_now, is_nested, keys, -1),
    ]
    hash_counts = (
        sides[0].unionAll(sides[1]).groupBy(*map(identifier, keys), _HASH).agg({_COUNT: "sum"})
    )
    return (
        hash_counts.where(f"`sum({_COUNT})` <> 0").selectExpr(*map(identifier, keys)).distinct()
    )


def _with_counts(
    rows: "DataFrame",
    names: Mapping[str, str | None],
    types: Mapping[str, str],
    is_nested: Mapping[str, bool],
    keys: Sequence[str],
    count: int,
) -> "DataFrame":
    values = {
        name: _value(then, types[name], is_nested=is_nested[name])
        for name, then in names.items()
    }
    # xxhash64 skips NULL: without the IS NULL terms, a value that moves to the next column
    # would not be detected.
    terms = ", ".join(f"{value}, {value} IS NULL" for value in values.values())
    selected = [f"{values[key]} AS {identifier(key)}" for key in keys]
    return rows.selectExpr(*selected, f"xxhash64({terms}) AS {_HASH}", f"{count} AS {_COUNT}")


def _value(name: str | None, column_type: str, *, is_nested: bool) -> str:
    if name is None:
        return "'{}'" if is_nested else f"CAST(NULL AS {column_type})"
    return (
        json_of(f"struct({identifier(name)} AS v)")
        if is_nested
        else f"CAST({identifier(name)} AS {column_type})"
    )


def rows_at(engine: Engine, table: str, snapshot_id: int) -> "DataFrame":
    """Return a table as of a snapshot.

    With `spark.read.table`, Spark 3.5 ignores the option, and reads the newest rows.
    """
    return _load(engine, table, {"versionAsOf": str(snapshot_id)})


def rows_between(
    engine: Engine, table: str, since_snapshot_id: int, snapshot_id: int
) -> "DataFrame":
    """Return the rows appended after one snapshot, up to another."""
    bounds = {
        "start-snapshot-id": str(since_snapshot_id),
        "end-snapshot-id": str(snapshot_id),
    }
    return _load(engine, table, bounds)


def _load(engine: Engine, table: str, options: Mapping[str, str]) -> "DataFrame":
    make_active(engine.spark)
    name = engine.catalog.sql_name(table)
    return engine.spark.read.format("iceberg").options(**options).load(name)


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
