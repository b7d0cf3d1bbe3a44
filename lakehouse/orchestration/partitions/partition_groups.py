"""Stale partitions grouped into runs by their numbers of source rows."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import dagster as dg

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.partition_metadata import rows_by_value
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.stale_partitions import followed
from lakehouse.orchestration.partitions.partition_bounds import keys_holding
from lakehouse.tables.table import IcebergTable

MOST_PARTITIONS = 366
"""Maximum number of partitions in one run: a year of days.

Each partition is a file, a predicate term, and a Dagster event per table that names all
partitions of the run; the event log of a run thus grows quadratically.
"""
MOST_ROWS = 20_000_000
"""Maximum number of source rows in a run of several partitions.

A run publishes a table atomically. After a crash, all rows are recomputed, and Spark stores
them on disk while the rules are evaluated.
"""


@dataclass
class _Group:
    keys: list[str] = field(default_factory=list)
    rows: float = 0.0
    last: int = -1

    def takes(self, position: int, rows: float, *, leaves_gaps: bool) -> bool:
        is_full = len(self.keys) == MOST_PARTITIONS or self.rows + rows > MOST_ROWS
        return not is_full and (leaves_gaps or position == self.last + 1)


def grouped(
    owing: Mapping[str, Collection[str]],
    keys: Sequence[str],
    rows: Mapping[str, float] | None = None,
    *,
    leaves_gaps: bool = True,
) -> list[tuple[str, ...]]:
    """Return the partitions of each run, in as few runs as possible, oldest partition first.

    All partitions of a run are stale for the same tables, so that a run recomputes no current
    partition, and a blocked table blocks all its partitions.

    :param owing: by key, the tables that must compute it.
    :param keys: all keys of the definition, in order.
    :param rows: source rows by key; None if there are few.
    :param leaves_gaps: whether a run can skip partitions.
    """
    groups: list[_Group] = []
    newest: dict[frozenset[str], _Group] = {}
    for position, key in enumerate(keys):
        if key not in owing:
            continue
        tables, key_rows = frozenset(owing[key]), rows.get(key, 0) if rows else 0
        group = newest.get(tables)
        if group is None or not group.takes(position, key_rows, leaves_gaps=leaves_gaps):
            group = newest[tables] = _Group()
            groups.append(group)
        group.keys.append(key)
        group.rows += key_rows
        group.last = position
    return [tuple(group.keys) for group in groups]


def stretches(keys: Sequence[str], chosen: Collection[str]) -> list[tuple[str, str]]:
    """Return the first and last key of each contiguous range of chosen keys.

    :param keys: all keys, in order.
    """
    chosen_keys, found = set(chosen), list[tuple[str, str]]()
    last = -1
    for position, key in enumerate(keys):
        if key not in chosen_keys:
            continue
        first = found.pop()[0] if found and position == last + 1 else key
        found.append((first, key))
        last = position
    return found


def source_rows(
    engine: Engine,
    tables: Sequence[tuple[IcebergTable, Mapping[str, Input]]],
    definition: dg.PartitionsDefinition,
    keys: Sequence[str],
) -> dict[str, float]:
    """Return the number of source rows for each partition; empty if one run can read them all.

    Rows of a day that overlaps several partitions, such as hours, are distributed equally.
    Files without a partition value are skipped.

    :param tables: tables and their inputs.
    :param keys: all keys of the definition, in order.
    """
    sources = _sources(engine, tables)
    heads = {source: read_history(engine, source).main for source, _ in sources}
    if sum(head.rows for head in heads.values() if head) <= MOST_ROWS:
        return {}
    rows: dict[str, float] = {}
    for (source, column), column_type in sources.items():
        head = heads[source]
        if head is None:
            continue
        counts = rows_by_value(engine.catalog.load(source), head.snapshot_id, column)
        for value, count in counts.items():
            holding = keys_holding(definition, keys, [value], column_type)
            for key in holding:
                rows[key] = rows.get(key, 0) + count / len(holding)
    return rows


def _sources(
    engine: Engine, tables: Sequence[tuple[IcebergTable, Mapping[str, Input]]]
) -> dict[tuple[str, str], str]:
    """Return the external source tables with their partition column and the target's type."""
    computed = {table.name for table, _ in tables}
    sources: dict[tuple[str, str], str] = {}
    for table, inputs in tables:
        for source, column in followed(table, inputs).items():
            if source not in computed and engine.catalog.has(source):
                assert table.overwritten_by is not None
                sources[source, column] = table.column(table.overwritten_by).type
    return sources
