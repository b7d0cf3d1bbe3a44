"""What the assets downstream of a table owe, as the runs that do it: told by the tables alone."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import dagster as dg

from lakehouse.iceberg.engine import Engine
from lakehouse.iceberg.owed import is_behind
from lakehouse.iceberg.owed_partitions import owed_values
from lakehouse.iceberg.table import IcebergTable
from lakehouse.resources.asset_inputs import inputs_of
from lakehouse.resources.keys import asset_key, table_name


@dataclass(frozen=True)
class OwedRange:
    """Neighbouring partitions, by the keys of the first and the last, and the tables that owe some of them."""

    first: str
    last: str
    tables: tuple[str, ...]


def downstream_of(definitions: dg.Definitions, table: str) -> list[str]:
    """Return a table and those that are computed from it, in the order of their computation."""
    graph = definitions.resolve_asset_graph()
    reached = dg.AssetSelection.assets(asset_key(table)).downstream().resolve(graph)
    return [table_name(key) for key in graph.toposorted_asset_keys if key in reached and graph.get(key).is_executable]


def owed_tables(definitions: dg.Definitions, engine: Engine, root: str, *, has_arrivals: bool) -> list[str]:
    """Return the tables that are owed as a whole, in order: a table that reads of one that is computed is too.

    Those that are computed by partitions, and what follows from them, are left to `owed_ranges`.

    :param has_arrivals: whether something waits to be put into the root table itself.
    """
    graph = definitions.resolve_asset_graph()
    owed: list[str] = []
    for table in _by_whole(definitions, root):
        sources = [table_name(parent) for parent in graph.get(asset_key(table)).parent_keys]
        if (table == root and has_arrivals) or set(sources) & set(owed) or is_behind(engine, table, sources):
            owed.append(table)
    return owed


def owed_ranges(
    definitions: dg.Definitions, engine: Engine, declared: Mapping[str, IcebergTable], root: str
) -> list[OwedRange]:
    """Return the ranges of neighbouring partitions owed downstream of a table, oldest first.

    A row without a partition, such as one that cannot be dated, goes along with any run: where no partition is owed
    for it, the newest is. May start Spark, see `lakehouse.iceberg.owed_partitions`.
    """
    graph = definitions.resolve_asset_graph()
    owed: dict[str, set[str]] = {}
    order: dict[str, int] = {}
    for table in downstream_of(definitions, root):
        node = graph.get(asset_key(table))
        if node.partitions_def is not None and table in declared:
            keys = node.partitions_def.get_partition_keys()
            order |= {key: position for position, key in enumerate(keys)}
            values = owed_values(engine, declared[table], inputs_of(node.metadata))
            owed[table] = _keys_of(node.partitions_def, keys, values)
            for parent in node.parent_keys:
                owed[table] |= owed.get(table_name(parent), set())
    follow = [table for table in downstream_of(definitions, root) if table not in _by_whole(definitions, root)]
    owing = {key: frozenset(table for table in owed if key in owed[table]) for key in set().union(*owed.values())}
    return [
        OwedRange(keys[0], keys[-1], _owing(definitions, follow, owing[keys[0]])) for keys in neighbouring(owing, order)
    ]


def neighbouring(owing: Mapping[str, frozenset[str]], order: Mapping[str, int]) -> list[list[str]]:
    """Split partition keys into runs of neighbours that the same tables owe.

    :param owing: by key, the tables that owe it: one that a table does not owe is not computed again with others.
    :param order: the positions of the keys among all.
    """
    found: list[list[str]] = []
    for key in sorted(owing, key=order.__getitem__):
        last = found[-1][-1] if found else None
        if last is not None and order[key] == order[last] + 1 and owing[key] == owing[last]:
            found[-1].append(key)
        else:
            found.append([key])
    return found


def late_tables(definitions: dg.Definitions, engine: Engine, root: str) -> list[str]:
    """Return the tables computed as a whole from partitioned ones, that lag behind them."""
    graph = definitions.resolve_asset_graph()
    owed: list[str] = []
    for table in downstream_of(definitions, root):
        node = graph.get(asset_key(table))
        sources = [table_name(parent) for parent in node.parent_keys]
        follows = node.partitions_def is None and table not in _by_whole(definitions, root)
        if follows and (set(sources) & set(owed) or is_behind(engine, table, sources)):
            owed.append(table)
    return owed


def _by_whole(definitions: dg.Definitions, root: str) -> list[str]:
    """Return the tables downstream of one that no partitioned table stands before."""
    graph = definitions.resolve_asset_graph()
    partitioned = {table for table in downstream_of(definitions, root) if graph.get(asset_key(table)).partitions_def}
    behind = {found for table in partitioned for found in downstream_of(definitions, table)}
    return [table for table in downstream_of(definitions, root) if table not in behind]


def _owing(definitions: dg.Definitions, order: list[str], tables: Iterable[str]) -> tuple[str, ...]:
    reached = {found for table in tables for found in downstream_of(definitions, table)}
    return tuple(table for table in order if table in reached)


def _keys_of(definition: dg.PartitionsDefinition, keys: list[str], values: set[Any]) -> set[str]:
    if not isinstance(definition, dg.TimeWindowPartitionsDefinition):
        return {str(value) for value in values} & set(keys)
    windows = [definition.time_window_for_partition_key(key) for key in keys]
    if not windows:
        return set()
    starts, end = [window.start.date() for window in windows], windows[-1].end.date()
    days = (_day(value) for value in values if value is not None)
    placed = {keys[bisect_right(starts, day) - 1] for day in days if starts[0] <= day < end}
    return placed or ({keys[-1]} if values else set())


def _day(value: Any) -> date:
    return value.date() if isinstance(value, datetime) else value
