"""Rows that older code computed, and the backfill runs that recompute only them."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import dagster as dg

from lakehouse.errors import UsageError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.code_versions import computed_parts
from lakehouse.iceberg.metadata.commit_record import parts_of
from lakehouse.iceberg.metadata.partition_metadata import (
    ExistingSpans,
    Extent,
    existing_extents,
)
from lakehouse.iceberg.metadata.snapshots import History, read_history
from lakehouse.iceberg.values.write_context import Partitions
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.asset_specs import inputs_of
from lakehouse.orchestration.dagster_internals import asset_graph
from lakehouse.orchestration.partitions.partition_bounds import partitions_of
from lakehouse.orchestration.partitions.pending_run import PendingRun
from lakehouse.orchestration.runs.backfill_runs import run_backfills
from lakehouse.orchestration.runs.run_in_process import MakeDefinitions
from lakehouse.orchestration.runs.run_result import RunResult
from lakehouse.orchestration.runs.runs_for_stale_tables import Downstream
from lakehouse.settings import Settings
from lakehouse.tables.table import Append, IcebergTable

if TYPE_CHECKING:
    from lakehouse.iceberg.catalog.catalog import Catalog
    from lakehouse.orchestration.dagster_internals import AssetGraph


def partitions_within(
    table: IcebergTable,
    definition: dg.PartitionsDefinition,
    extents: Collection[Extent] | None,
) -> Iterator[tuple[str, Partitions]]:
    """Yield the partitions that can contain rows with their keys, in order.

    :param extents: value ranges of the existing files; None if unknown (yields all).
    """
    by = table.overwritten_by or ""
    keys = definition.get_partition_keys()
    partitions = partitions_of(definition, keys, column=by, column_type=table.column(by).type)
    if not partitions.ranges:
        for key in keys:
            if extents is None or (key, key) in extents:
                yield key, Partitions((key,))
        return
    like = partitions.ranges[0][0]
    there = None if extents is None else ExistingSpans(extents, like)
    for key, span in zip(keys, partitions.ranges, strict=True):
        if there is None or there.share(span):
            yield key, Partitions((key,), (span,))


def backfill_older(
    project: MakeDefinitions, settings: Settings, engine: Engine, table: IcebergTable
) -> list[RunResult]:
    """Recompute the rows that older code computed, and downstream assets.

    For a partitioned table, only its non-empty partitions of older code. Rows of unknown code
    are not recomputed. Stops after a failed run; the next call finds the remaining partitions.

    :returns: the runs; empty if nothing is older.
    :raises UsageError: the table is append-only, has no inputs, or its code has no version.
    """
    here = project(lambda: settings)
    return run_backfills(here, settings, table.name, _runs(engine, asset_graph(here), table))


def _runs(engine: Engine, graph: "AssetGraph", table: IcebergTable) -> list[PendingRun]:
    key = asset_key(table.name)
    node = graph.get(key) if graph.has(key) else None
    if node is None or not inputs_of(node.metadata):
        raise UsageError(
            f"{table.name} is computed from no other table; expected one that is.",
            next_step="What a feed has landed stays as it was delivered.",
        )
    if not is_computed_again(table):
        raise UsageError(
            f"{table.name} is appended to, and what it has stays as it was computed; expected a"
            " table that is merged or overwritten."
        )
    if node.code_version is None:
        raise UsageError(
            f"The code that computes {table.name} has no version; expected a function that stands"
            " in a file.",
            next_step=f"`lakehouse backfill {table.name}` computes it all the same.",
        )
    if not engine.catalog.has(table.name):
        return []
    history = read_history(engine, table.name)
    code = code_of(engine.catalog, table, history, node.code_version, node.partitions_def)
    downstream = Downstream(graph, table.name)
    if node.partitions_def is None:
        return [PendingRun(downstream.with_alike([table.name]))] if code.is_older else []
    older = {table.name: code.older_partitions}
    return downstream.partition_runs(engine, [table], node.partitions_def, older)


def is_computed_again(table: IcebergTable) -> bool:
    """Whether existing rows can be recomputed: appended rows cannot."""
    return not isinstance(table.write, Append)


@dataclass(frozen=True)
class TableCode:
    """Whether a table has rows of older or unknown code, and in which partitions."""

    is_older: bool = False
    is_unknown: bool = False
    older_partitions: frozenset[str] = frozenset()


def code_of_tables(
    catalog: "Catalog",
    histories: Mapping[str, History],
    declared: Mapping[str, IcebergTable],
    graph: "AssetGraph",
) -> dict[str, TableCode]:
    """Return the code state of existing tables by name, without tables that cannot recompute."""
    known = {}
    for name in histories.keys() & declared.keys():
        table = declared[name]
        key = asset_key(table.name)
        node = graph.get(key) if graph.has(key) else None
        if node and node.code_version and inputs_of(node.metadata) and is_computed_again(table):
            version, definition = node.code_version, node.partitions_def
            known[name] = code_of(catalog, table, histories[name], version, definition)
    return known


def code_of(
    catalog: "Catalog",
    table: IcebergTable,
    history: History,
    version: str,
    definition: dg.PartitionsDefinition | None,
) -> TableCode:
    """Return the code state of a table from metadata only; no JVM.

    Empty partitions do not count as older code if the table's partition spec identifies them.

    :param version: current code version.
    """
    if history.is_empty:
        return TableCode()
    parts = computed_parts(history)
    if not parts:
        return TableCode(is_unknown=True)
    is_older = any(part.is_older_than(version) for part in parts)
    is_unknown = any(part.is_unknown for part in parts)
    is_current = not (is_older or is_unknown)
    if is_current or table.overwritten_by is None or definition is None:
        return TableCode(is_older, is_unknown)
    older, is_unknown = set(), False
    extents = existing_extents(catalog.load(table.name), table.overwritten_by)
    for key, partition in partitions_within(table, definition, extents):
        found = parts_of(parts, partition)
        if any(part.is_older_than(version) for part in found):
            older.add(key)
        is_unknown |= any(part.is_unknown for part in found)
    return TableCode(bool(older), is_unknown, frozenset(older))
