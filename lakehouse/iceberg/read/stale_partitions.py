"""Which partitions of a table have yet to be computed from what its sources now hold.

Told by the tables alone: by the sources' commits, by what each commit of the target was
computed from, and by where the rows stand whose newer versions have come. A run covers some
partitions and not others, so each commit is stamped with both: what the run read for its
partitions, and what the whole table has been computed from since.
"""

from collections.abc import Iterator, Mapping, Set
from datetime import date, datetime
from functools import cache, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.metadata.all_partitions import AllPartitions
from lakehouse.iceberg.metadata.changed_partitions import changed_values, partition_fields
from lakehouse.iceberg.metadata.commit_properties import CommitProperties
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.metadata.history import History, read_history
from lakehouse.iceberg.metadata.write_context import Partitions
from lakehouse.iceberg.metadata.write_result import Pin, by_table
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.pinned_frames import read
from lakehouse.iceberg.read.pinned_inputs import pin_since, read_since
from lakehouse.iceberg.read.version_keys import (
    among_keys,
    few_keys,
    key_locations,
    key_terms,
)
from lakehouse.tables.quoting import between, identifier, in_utc, without_zone
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOST_PARTITIONS = 100_000
"""As many as Dagster recommends that an asset has at most:
https://docs.dagster.io/guides/build/partitions-and-backfills/partitioning-assets.
"""
_REMEMBERED = 16
_known_affected: dict[tuple[Pin, Pin], frozenset[Any] | None] = {}
"""By what had arrived and the state of the table, the partitions that were affected.

Of the process, and no part of the plan that a write is given: who decides which partitions a run
is to compute asks before there is a run. Between the two stands Dagster, which hands on a run's
partitions and tags and no objects, and makes the run an engine of its own. Nothing here goes out
of date, since the rows of a snapshot never change.
"""


def followed(table: IcebergTable, inputs: Mapping[str, Input]) -> dict[str, str]:
    """Return the tables that one is computed from partition by partition, each with the column
    that tells.
    """
    if table.overwritten_by is None:
        return {}
    return {
        declared.table: declared.by
        for declared in inputs.values()
        if declared.by and declared.table != table.name
    }


def partition_only_sources(table: IcebergTable, inputs: Mapping[str, Input]) -> dict[str, str]:
    """Return the tables whose rows of no partition are read by no run, each with the column
    that tells.

    Of a table that is read `outside` of the run's partitions too, the function is given those
    rows.
    """
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
    """Return the values of the partition column that are stale; None among them for rows that
    have no value.

    Starts Spark only where new rows may be versions of rows that stand elsewhere.

    :param every: all partitions that there are; those among them that were none when their rows
        came are stale.
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
    """Return, by source, the values that are stale as of what is read of it; none of a run
    without partitions.
    """
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
    """Return, by source, the values that are stale as of a snapshot of each; a source without
    one has none.
    """
    read_until = {
        source: (column, snapshot_id)
        for source, column in followed(table, inputs).items()
        if (snapshot_id := until.get(source)) is not None
    }
    return {
        source: stale_of(
            engine,
            table,
            source,
            column,
            snapshot_id,
            every,
            others={name: at for name, at in read_until.items() if name != source},
        )
        for source, (column, snapshot_id) in read_until.items()
    }


def stale_of(
    engine: Engine,
    table: IcebergTable,
    source: str,
    column: str,
    until: int,
    every: AllPartitions | None = None,
    others: Mapping[str, tuple[str, int]] = MappingProxyType({}),
) -> set[Any]:
    """Return the values that are stale by one source, as of a snapshot of it.

    :param others: the other sources of the table, each with the column that tells the partition
        and the snapshot that is read: where rows went from this one, a version of theirs may
        count again.
    """
    target = read_history(engine, table.name) if engine.catalog.has(table.name) else None
    floor = target.watermark(source) if target else None
    waiting = _waiting(target, source, every) if target else set()
    if floor == until and not waiting:
        return set()
    changed = cache(lambda since: _changed(engine, table, source, column, since, until, others))
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
    """Return the values that were no partition when the table was computed, are one now, and
    were not computed since.

    Rows of theirs came before the watermark of the source.
    """
    target = read_history(engine, table.name)
    commits = list(commits_since(target, source, target.watermark(source)))
    waiting = _waiting(target, source, every)
    return {value for value in waiting if _read_for(commits, source, value, every) is None}


def _waiting(target: History, source: str, every: AllPartitions | None) -> set[Any]:
    if every is None:
        return set()
    return {
        value for value in every.values_of(target.left_out(source)) if every.has_all_of(value)
    }


def watermarks(
    table: IcebergTable,
    target: History,
    pins: Mapping[str, Pin],
    stale: Mapping[str, Set[Any]],
    partitions: Partitions | None,
) -> dict[str, int]:
    """Return what the whole table is computed from, once a run's partitions are: an input's
    pin, where no other is stale.

    Where other partitions are, the watermark of that source stays what it was.
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
    """Return the partitions where rows stand that may be versions of what the inputs read as
    having come since.

    None where that is not known: what is computed in full is more than what came, or they are
    too many.
    """
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
    column: str,
    since: int | None,
    until: int,
    others: Mapping[str, tuple[str, int]],
) -> set[Any]:
    """Return the partitions that a source's commits touched, or that rows of theirs may have
    left or come back to.
    """
    history, loaded = read_history(engine, source), engine.catalog.load(source)
    values = changed_values(loaded, history, since, until, column)
    is_appended = history.appends_between(since, until) is not None
    main = read_history(engine, table.name).main if engine.catalog.has(table.name) else None
    if main is None or (is_appended and not values):
        return values
    if history.kept_between(since, until) is None:
        # After a rollback the target may have what the source has no more.
        values |= _existing_values(engine, table, main.snapshot_id)
    if table.versions is None:
        return values
    if since is not None and not is_appended:
        # Where rows went, an older version of any of them may count again, whichever source has
        # it.
        values |= changed_values(loaded, history, None, until, column)
        for other, (its_column, at) in others.items():
            values |= changed_values(
                engine.catalog.load(other), read_history(engine, other), None, at, its_column
            )
    if main.is_empty:
        return values
    affected = _affected(
        engine, table, pin_since(history, since, until), Pin(table.name, main.snapshot_id)
    )
    if affected is None:
        return values | _existing_values(engine, table, main.snapshot_id)
    return values | affected


def _existing_values(engine: Engine, table: IcebergTable, snapshot_id: int) -> set[Any]:
    """Return the partitions that a table has rows of; where its files are of coarser ones, such
    as months, of Spark.

    :raises DeclarationError: when they are more than a run, or Dagster, can name.
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
    found = _collect(read(engine, Pin(table.name, snapshot_id)).selectExpr(value))
    if found is None:
        raise DeclarationError(
            f"{table.name} has more than {_MOST_PARTITIONS:,} partitions by {by} to look at;"
            " expected fewer, each of which a run computes.",
            next_step="Let it overwrite by a column of fewer values, such as the day.",
        )
    return set(found)


def _collect(values: "DataFrame") -> frozenset[Any] | None:
    """Return values of the partition column, each once; None where they are too many.

    :param values: moments as they are `without_zone`.
    """
    rows = values.distinct().limit(_MOST_PARTITIONS + 1).collect()
    if len(rows) > _MOST_PARTITIONS:
        return None
    return frozenset(in_utc(row[0]) for row in rows)


def _affected(
    engine: Engine, table: IcebergTable, arrived_at: Pin, existing_at: Pin
) -> frozenset[Any] | None:
    """Return the partitions where rows stand, of which others have arrived that are versions of
    them, as the values of its column; None where these are too many, as moments may be.

    It looks at every row of the table, and is asked more than once: for what is stale, and by
    each run that does some of it. No two tables have a snapshot id in common, so that the pins
    tell all.
    """
    if (arrived_at, existing_at) not in _known_affected:
        while len(_known_affected) >= _REMEMBERED:
            del _known_affected[next(iter(_known_affected))]
        _known_affected[arrived_at, existing_at] = _look_up_affected(
            engine, table, arrived_at, existing_at
        )
    return _known_affected[arrived_at, existing_at]


def _look_up_affected(
    engine: Engine, table: IcebergTable, arrived_at: Pin, existing_at: Pin
) -> frozenset[Any] | None:
    assert table.versions is not None
    arrived, first = read(engine, arrived_at), table.versions.of[0]
    column = table.column(table.write.by)  # type: ignore[union-attr]
    by = without_zone(identifier(column.name), column.type)
    keys = arrived.selectExpr(*key_terms(table, arrived))
    few = few_keys(table, keys)
    if few is not None:
        rows = read(engine, existing_at, among_keys(table, few))
        return _collect(rows.selectExpr(by))
    keys = keys.distinct()
    # Keys that grow with time lie close together; then few files can have any of them.
    kind = dict(keys.dtypes)[first]
    ends = (without_zone(f"{end}({identifier(first)})", kind) for end in ("min", "max"))
    bounds = keys.selectExpr(*ends).first()
    assert bounds is not None
    lie_close = between(first, *bounds)
    existing = read(engine, existing_at, lie_close)
    return _collect(key_locations(table, existing, keys).selectExpr(by))


def commits_since(
    target: History, source: str, floor: int | None
) -> Iterator[CommitProperties]:
    """Yield the commits of runs since the watermark came to be what it is, newest first."""
    for snapshot in target.line:
        commit = snapshot.commit
        if commit and commit.read:
            if commit.inputs.get(source) != floor:
                return
            yield commit


def _read_for(
    commits: list[CommitProperties], source: str, value: Any, every: AllPartitions | None
) -> int | None:
    """Return what was last read of a source for a value; None where no run had it.

    What is in no partition goes along with any run.
    """
    reading = (commit for commit in commits if source in commit.read)
    if every is not None and not every.has(value):
        return next((commit.read[source] for commit in reading), None)
    return next(
        (commit.read[source] for commit in reading if _covers(commit, value, every)), None
    )


def _covers(commit: CommitProperties, value: Any, every: AllPartitions | None) -> bool:
    if value is None or not commit.spans:
        return str(value) in commit.partitions
    # mypy takes a class for something that has no hash.
    kind: Any = type(value)
    return _partitions_within(commit.spans, kind, every).has(value)


@lru_cache(maxsize=_REMEMBERED)
def _partitions_within(
    spans: tuple[tuple[str, str], ...], kind: type[object], every: AllPartitions | None
) -> Partitions:
    """Return the partitions that a commit says, once for all values that are asked for."""
    bounds = tuple((_bound(kind, low), _bound(kind, high)) for low, high in spans)
    return Partitions((), bounds, every)


def _bound(kind: type[object], text: str) -> Any:
    if issubclass(kind, date):
        return datetime.fromisoformat(text) if "T" in text else date.fromisoformat(text)
    return kind(text)  # type: ignore[call-arg]
