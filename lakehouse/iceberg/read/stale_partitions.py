"""Partitions of a table that must be computed from the current rows of its sources.

A run covers only some partitions. Therefore each commit records the snapshots that the run read
for its partitions, and the watermarks of the entire table.
"""

from collections.abc import Iterator, Mapping, Set
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.commit_record import CommitProperties
from lakehouse.iceberg.metadata.partition_metadata import changed_values, partition_fields
from lakehouse.iceberg.metadata.snapshots import History, read_history
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.pinned_frames import read, read_main
from lakehouse.iceberg.read.pinned_inputs import pin_since, read_since
from lakehouse.iceberg.read.version_keys import (
    few_keys,
    few_keys_predicate,
    key_locations,
    key_terms,
)
from lakehouse.iceberg.values.value_ranges import AllPartitions, bound
from lakehouse.iceberg.values.write_context import Partitions
from lakehouse.iceberg.values.write_result import Pin, by_table
from lakehouse.tables.quoting import between, identifier, in_utc, without_zone
from lakehouse.tables.table import SOURCE_COLUMNS, IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOST_PARTITIONS = 100_000
"""Dagster's recommended maximum of partitions per asset:
https://docs.dagster.io/guides/build/partitions-and-backfills/partitioning-assets.
"""
_CACHE_SIZE = 16
_known_affected: dict[tuple[Pin, Pin], frozenset[Any] | None] = {}
"""Cache of affected partitions, by the pins of new and existing rows.

It belongs to the process instead of the plan, since the partitions of a run are determined
before the run exists, and Dagster passes only partitions and tags to the run. Entries never
become invalid, since the rows of a snapshot do not change.
"""


def followed(table: IcebergTable, inputs: Mapping[str, Input]) -> dict[str, str]:
    """Return the sources that are read by partitions, each with its partition column."""
    if table.overwritten_by is None:
        return {}
    return {
        declared.table: declared.by
        for declared in inputs.values()
        if declared.by and declared.table != table.name
    }


def partition_only_sources(table: IcebergTable, inputs: Mapping[str, Input]) -> dict[str, str]:
    """Return the sources whose rows in no partition are read by no run, with their column."""
    if table.overwritten_by is None:
        return {}
    read_outside = {declared.table for declared in inputs.values() if declared.outside}
    read = (
        declared
        for declared in inputs.values()
        if declared.by and declared.mode in ("latest", "incremental")
    )
    return {
        declared.table: declared.by
        for declared in read
        if declared.by and declared.table not in {*read_outside, table.name}
    }


def stale_values(
    engine: Engine,
    table: IcebergTable,
    inputs: Mapping[str, Input],
    every: AllPartitions | None = None,
) -> set[Any]:
    """Return the stale values of the partition column; None represents rows without a value.

    Starts Spark only if new rows can be versions of existing rows in other partitions.

    :param every: all defined partitions; those that were defined after their rows arrived are
        stale.
    """
    mains = {
        source: read_history(engine, source).main
        for source in followed(table, inputs)
        if engine.catalog.has(source)
    }
    until = {source: main.snapshot_id if main else None for source, main in mains.items()}
    stale: set[Any] = set()
    return stale.union(*_stale_by_source(engine, table, inputs, until, every).values())


def stale_by_source(
    engine: Engine,
    table: IcebergTable,
    inputs: Mapping[str, Input],
    pins: Mapping[str, Pin],
    partitions: Partitions | None,
) -> dict[str, set[Any]]:
    """Return the stale values by source, as of the pinned snapshots; empty without partitions."""
    if partitions is None:
        return {}
    until = {name: pin.snapshot_id for name, pin in by_table(pins.values()).items()}
    return _stale_by_source(engine, table, inputs, until, partitions.every)


def _stale_by_source(
    engine: Engine,
    table: IcebergTable,
    inputs: Mapping[str, Input],
    until: Mapping[str, int | None],
    every: AllPartitions | None,
) -> dict[str, set[Any]]:
    """Return the stale values by source that has a snapshot."""
    read_until = {
        source: (column, snapshot_id)
        for source, column in followed(table, inputs).items()
        if (snapshot_id := until.get(source)) is not None
    }
    return {
        source: _stale_of(engine, table, source, read_until, every) for source in read_until
    }


def _stale_of(
    engine: Engine,
    table: IcebergTable,
    source: str,
    read_until: Mapping[str, tuple[str, int]],
    every: AllPartitions | None,
) -> set[Any]:
    """Return the values that are stale because of one source.

    :param read_until: partition column and snapshot of each source.
    """
    _, until = read_until[source]
    target = read_history(engine, table.name) if engine.catalog.has(table.name) else None
    floor = target.watermark(source) if target else None
    waiting = _waiting(target, source, every) if target else set()
    if floor == until and not waiting:
        return set()
    changed = cache(lambda since: _changed(engine, table, source, read_until, since))
    commits = list(commits_since(target, source, floor)) if target else []
    covered = {
        value: _read_for(commits, source, value, every) for value in changed(floor) | waiting
    }
    return {
        value
        for value, pin in covered.items()
        if pin is None or (pin != until and value in changed(pin))
    }


def waiting_values(
    engine: Engine, table: IcebergTable, source: str, every: AllPartitions | None
) -> set[Any]:
    """Return the values that became partitions later and were not computed since."""
    target = read_history(engine, table.name)
    commits = list(commits_since(target, source, target.watermark(source)))
    waiting = _waiting(target, source, every)
    return {value for value in waiting if _read_for(commits, source, value, every) is None}


def _waiting(target: History, source: str, every: AllPartitions | None) -> set[Any]:
    if every is None:
        return set()
    return {
        value
        for value in every.values_of(target.outside_partitions(source))
        if every.has_all_of(value)
    }


def watermarks(
    table: IcebergTable,
    target: History,
    pins: Mapping[str, Pin],
    stale: Mapping[str, Set[Any]],
    partitions: Partitions | None,
) -> dict[str, int]:
    """Return the watermarks of the entire table after a run.

    The watermark of a source does not advance while other partitions are stale.
    """
    marks = {
        name: pin.snapshot_id
        for name, pin in by_table(pins.values()).items()
        if pin.snapshot_id and name != table.name
    }
    if partitions is None:
        return marks
    for source, values in stale.items():
        if any(partitions.is_one(value) and not partitions.has(value) for value in values):
            del marks[source]
            floor = target.watermark(source)
            if floor:
                marks[source] = floor
    return marks


def affected_partitions(
    engine: Engine, table: IcebergTable, inputs: Mapping[str, Input], pins: Mapping[str, Pin]
) -> frozenset[Any] | None:
    """Return the partitions with versions of the new rows; None if unknown or too many."""
    since = read_since(inputs, pins)
    own = next(
        (pins[name] for name, declared in inputs.items() if declared.mode == "existing_rows"),
        None,
    )
    if table.versions is None or own is None or own.snapshot_id is None or len(since) != 1:
        return None
    ((source, start),) = since.items()
    end = by_table(pins.values())[source].snapshot_id
    assert end is not None
    return _affected(
        engine,
        table,
        pin_since(read_history(engine, source), start, end),
        Pin(own.table, own.snapshot_id),
    )


def _changed(
    engine: Engine,
    table: IcebergTable,
    source: str,
    read_until: Mapping[str, tuple[str, int]],
    since: int | None,
) -> set[Any]:
    """Return the partitions that a source's commits changed, or whose rows can move."""
    column, until = read_until[source]
    history, loaded = read_history(engine, source), engine.catalog.load(source)
    values = changed_values(loaded, history, since, until, column)
    is_appended = history.appends_between(since, until) is not None
    main = read_history(engine, table.name).main if engine.catalog.has(table.name) else None
    if main is None or (is_appended and not values):
        return values
    if history.kept_between(since, until) is None:
        # After a rollback, the target can contain rows that are no longer in the source.
        values |= _existing_values(engine, table, main.snapshot_id)
    if table.versions is None:
        return values
    if since is not None and not is_appended:
        # If rows were removed, an older version from any source can become current again.
        for name, (by, at) in read_until.items():
            named, its_history = engine.catalog.load(name), read_history(engine, name)
            values |= changed_values(named, its_history, None, at, by)
    if main.is_empty:
        return values
    affected = _affected(
        engine, table, pin_since(history, since, until), Pin(table.name, main.snapshot_id)
    )
    if affected is None:
        return values | _existing_values(engine, table, main.snapshot_id)
    return values | affected


def _existing_values(engine: Engine, table: IcebergTable, snapshot_id: int) -> set[Any]:
    """Return the partitions of a table's rows; uses Spark if its files have coarser partitions.

    :raises DeclarationError: if there are more than Dagster supports.
    """
    by = table.write.by  # type: ignore[union-attr]
    loaded = engine.catalog.load(table.name)
    if partition_fields(loaded, by).keys() == loaded.specs().keys():
        return changed_values(loaded, read_history(engine, table.name), None, snapshot_id, by)
    value = (
        f"to_date({identifier(by)})"
        if table.column(by).type in ("timestamp", "timestamp_ntz")
        else identifier(by)
    )
    return _all_values(table, read(engine, Pin(table.name, snapshot_id)).selectExpr(value))


def _all_values(table: IcebergTable, values: "DataFrame") -> set[Any]:
    """Return the distinct values of one column, with timestamps in UTC."""
    ((name, kind),) = values.dtypes
    found = _collect(values.selectExpr(without_zone(identifier(name), kind)))
    if found is None:
        raise DeclarationError(
            f"{table.name} has more than {_MOST_PARTITIONS:,} partitions by"
            f" {table.overwritten_by}; expected fewer, since each is computed by a run.",
            next_step="Overwrite it by a column with fewer values, such as the day.",
        )
    return set(found)


def _collect(values: "DataFrame") -> frozenset[Any] | None:
    """Return the distinct values of the partition column; None if there are too many."""
    rows = values.distinct().limit(_MOST_PARTITIONS + 1).collect()
    if len(rows) > _MOST_PARTITIONS:
        return None
    return frozenset(in_utc(row[0]) for row in rows)


def _affected(
    engine: Engine, table: IcebergTable, arrived_at: Pin, existing_at: Pin
) -> frozenset[Any] | None:
    """Return the partitions with existing versions of new rows; None if too many.

    The query scans the table, and its result is needed several times. Snapshot ids are unique
    across tables, so the pins are a sufficient cache key.
    """
    if (arrived_at, existing_at) not in _known_affected:
        while len(_known_affected) >= _CACHE_SIZE:
            del _known_affected[next(iter(_known_affected))]
        _known_affected[arrived_at, existing_at] = _look_up_affected(
            engine, table, read(engine, arrived_at), existing_at
        )
    return _known_affected[arrived_at, existing_at]


def _look_up_affected(
    engine: Engine, table: IcebergTable, arrived: "DataFrame", existing_at: Pin
) -> frozenset[Any] | None:
    assert table.versions is not None
    first = table.versions.of[0]
    column = table.column(table.write.by)  # type: ignore[union-attr]
    by = without_zone(identifier(column.name), column.type)
    keys = arrived.selectExpr(*key_terms(table, arrived))
    few = few_keys(table, keys)
    if few is not None:
        rows = read(engine, existing_at, few_keys_predicate(table, few))
        return _collect(rows.selectExpr(by))
    keys = keys.distinct()
    # Keys that grow with time are close together, so that few files match the range.
    kind = dict(keys.dtypes)[first]
    ends = (without_zone(f"{end}({identifier(first)})", kind) for end in ("min", "max"))
    bounds = keys.selectExpr(*ends).first()
    assert bounds is not None
    # Keys without a value in the column are equal too.
    in_key_range = f"({identifier(first)} IS NULL OR {between(first, *bounds)})"
    existing = read(engine, existing_at, in_key_range)
    return _collect(key_locations(table, existing, keys).selectExpr(by))


def quarantined_values(
    engine: Engine, table: IcebergTable, inputs: Mapping[str, Input]
) -> set[Any]:
    """Return the partitions of quarantined rows, and of existing versions of these rows.

    A row is in the partition that its source has, or else in the delivered one; None represents
    rows without one. If a quarantined version is accepted, its older versions leave theirs.

    :param table: overwritten by partitions, with a quarantine.
    """
    assert table.quarantine is not None
    assert table.overwritten_by is not None
    names, by = [*SOURCE_COLUMNS], table.overwritten_by
    quarantined = read_main(engine, table.quarantine.name)
    rest = quarantined.selectExpr(*names, f"{table.cast_sql(by, identifier(by))} AS __value")
    values: set[Any] = set()
    for source, column in followed(table, inputs).items():
        rows = read_main(engine, source)
        if {*names} <= {*rows.columns}:
            there = rows.join(quarantined.select(*names), names, "left_semi")
            rest = rest.join(there.select(*names), names, "left_anti")
            values |= _all_values(table, there.select(column))
    values |= _all_values(table, rest.select("__value"))
    main = read_history(engine, table.name).main if engine.catalog.has(table.name) else None
    if table.versions is None or main is None or main.is_empty:
        return values
    affected = _look_up_affected(engine, table, quarantined, Pin(table.name, main.snapshot_id))
    if affected is None:
        return values | _existing_values(engine, table, main.snapshot_id)
    return values | affected


def commits_since(
    target: History, source: str, floor: int | None
) -> Iterator[CommitProperties]:
    """Yield the commits of runs since the watermark was set, newest first."""
    for snapshot in target.line:
        commit = snapshot.commit
        if commit and commit.read:
            if commit.inputs.get(source) != floor:
                return
            yield commit


def _read_for(
    commits: list[CommitProperties], source: str, value: Any, every: AllPartitions | None
) -> int | None:
    """Return the snapshot of a source that was last read for a value; None without one."""
    reading = (commit for commit in commits if source in commit.read)
    if every is not None and not every.has(value):
        return next((commit.read[source] for commit in reading), None)
    return next(
        (commit.read[source] for commit in reading if _covers(commit, value, every)), None
    )


def _covers(commit: CommitProperties, value: Any, every: AllPartitions | None) -> bool:
    if value is None or not commit.merged_ranges:
        return str(value) in commit.partitions
    return _partitions_within(commit.merged_ranges, every).has(value)


@lru_cache(maxsize=_CACHE_SIZE)
def _partitions_within(
    ranges: tuple[tuple[str, str], ...], every: AllPartitions | None
) -> Partitions:
    """Return the partitions of a commit, cached for all requested values."""
    bounds = tuple((bound(low), bound(high)) for low, high in ranges)
    return Partitions((), bounds, every)
