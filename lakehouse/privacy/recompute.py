"""Recomputes tables that aggregate rows of erased people, at any distance.

From a table with one person per row, their rows are deleted. Any other table that is computed
from it can contain them in its sums, and so can all tables that are computed from that.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dagster as dg

from lakehouse.errors import LakehouseError
from lakehouse.iceberg.erasure.erasure_commits import touched_partitions
from lakehouse.iceberg.read.inputs import Input
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.asset_specs import inputs_of
from lakehouse.orchestration.dagster_internals import asset_graph
from lakehouse.orchestration.partitions.partition_bounds import keys_holding
from lakehouse.orchestration.partitions.partition_groups import grouped, source_rows
from lakehouse.orchestration.partitions.pending_run import PendingRun
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.run_in_process import materialize
from lakehouse.orchestration.runs.runs_for_stale_tables import BACKFILL, RECOMPUTED_FOR_ERASURE
from lakehouse.privacy.erasable import Erasable
from lakehouse.tables.person import Person

if TYPE_CHECKING:
    from lakehouse.orchestration.dagster_internals import AssetGraph

Keys = Collection[str] | None
"""Partition keys to recompute; None for the entire table."""


@dataclass(frozen=True)
class SumsTable:
    """A table that can contain erased people in its sums."""

    name: str
    deleted: frozenset[str] = frozenset()
    """Sources with deleted rows of people whose rows the table does not contain."""
    recomputed: frozenset[str] = frozenset()
    """Sources that are recomputed."""


@dataclass(frozen=True)
class Sums:
    """The tables with erased people in their sums."""

    tables: tuple[SumsTable, ...] = ()
    """Tables to recompute, sources first."""
    kept: tuple[str, ...] = ()
    """Tables that keep their sums, as declared, or are computed only from such tables."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tables to recompute."""
        return tuple(table.name for table in self.tables)


def find_sums(
    erasable: Erasable,
    persons: Iterable[Person],
    deleted: Collection[str],
    shared: Collection[str] = (),
) -> Sums:
    """Return the existing tables that contain some people in their sums.

    :param deleted: the tables with deleted rows of them on main.
    :param shared: values of these people that a person who remains has too.
    """
    own = set(_tables_of_persons(erasable, persons, is_shared=bool(shared)))
    quarantines = {one.quarantine.name for one in erasable.tables.values() if one.quarantine}
    tables: dict[str, SumsTable] = {}
    kept: list[str] = []
    for name in erasable.in_order():
        if name in quarantines or not erasable.engine.catalog.has(name):
            continue
        sources = set(erasable.sources.get(name, ())) - {name}
        sources_with_deletions = set() if name in own else sources & set(deleted)
        table = SumsTable(
            name, frozenset(sources_with_deletions), frozenset(sources & tables.keys())
        )
        if not table.deleted and not table.recomputed:
            if name not in own and sources & set(kept):
                kept.append(name)
        elif erasable.tables[name].on_erasure == "keep":
            kept.append(name)
        else:
            tables[name] = table
    return Sums(tuple(tables.values()), tuple(kept))


def _tables_of_persons(
    erasable: Erasable, persons: Iterable[Person], *, is_shared: bool
) -> Iterator[str]:
    """Yield the tables with one person per row.

    A row that is identified by a personal value remains if another person has it too.
    """
    for holder, _ in erasable.holders(persons):
        if holder.is_by_id or (holder.row_column is not None and not is_shared):
            yield holder.table


def recompute_tables(
    erasable: Erasable,
    request_id: str,
    sums: Sums,
    deleted: Mapping[str, int],
) -> list[str]:
    """Recompute the tables with rows of a request in their sums, only in the affected partitions
    if these are known; return those of which anything was affected.

    It must run before snapshots expire: their commits show the affected partitions.

    :param deleted: the number of rows that the request deleted from main of each table.
    :raises LakehouseError: if a table could not be computed.
    """
    if not sums.tables:
        return []
    definitions = erasable.make_definitions(lambda: erasable.settings)
    affected = _Affected(erasable, request_id, asset_graph(definitions), deleted, {})
    recomputed = []
    for table in sums.tables:
        keys = affected.keys(table)
        affected.known[table.name] = keys
        runs = affected.runs(table.name, keys)
        for run in runs:
            _compute(erasable, definitions, request_id, run)
        if runs:
            recomputed.append(table.name)
    return recomputed


def _compute(
    erasable: Erasable, definitions: dg.Definitions, request_id: str, run: PendingRun
) -> None:

    (name,) = run.tables
    with open_instance(erasable.settings) as instance:
        result = materialize(
            definitions,
            instance,
            dg.AssetSelection.assets(asset_key(name)),
            partition=run.partitions,
            tags={BACKFILL: name, RECOMPUTED_FOR_ERASURE: request_id, **run.tags},
        )
    if not result.success:
        raise LakehouseError(
            f"{name} could not be recomputed without the erased people; expected its run to"
            " succeed.",
            next_step="`lakehouse alerts` shows the reason; the same call repeats it.",
        )


@dataclass(frozen=True)
class _Affected:
    """The affected partitions of tables, in the order of `Sums.tables`."""

    erasable: Erasable
    request_id: str
    graph: "AssetGraph"
    deleted: Mapping[str, int]
    known: dict[str, Keys]
    """By table."""

    def keys(self, table: SumsTable) -> Keys:
        """Return the affected partitions of a table; empty if it needs no run."""
        definition = self._definition(table.name)
        inputs = self._inputs(table.name).values()
        keys: set[str] = set()
        for source in sorted(table.deleted | table.recomputed):
            reads = [read for read in inputs if read.table == source]
            sources_keys = []
            if source in table.deleted:
                sources_keys.append(self._keys_of_deleted(table.name, source, reads))
            if source in table.recomputed:
                # Former snapshots are not recomputed.
                now = [read for read in reads if read.mode != "as_of"]
                if now or not reads:
                    sources_keys.append(self._keys_of_recomputed(table.name, source, now))
            if None in sources_keys or (definition is None and any(sources_keys)):
                return None
            keys.update(*(one for one in sources_keys if one))
        return keys

    def runs(self, name: str, keys: Keys) -> list[PendingRun]:
        """Return the runs that compute partitions of a table."""
        definition, inputs = self._definition(name), self._inputs(name)
        if definition is None:
            return [PendingRun((name,))] if keys is None else []
        every = definition.get_partition_keys()
        declared = self.erasable.tables[name]
        rows = source_rows(self.erasable.engine, [(declared, inputs)], definition, every)
        owing = dict.fromkeys(every if keys is None else keys, (name,))
        leaves_gaps = bool(inputs)
        return [
            PendingRun.of_partitions(
                (name,), group, every, partitioned=(name,), leaves_gaps=leaves_gaps
            )
            for group in grouped(owing, every, rows, leaves_gaps=leaves_gaps)
        ]

    def _keys_of_deleted(self, name: str, source: str, reads: Collection[Input]) -> Keys:
        """Return the partitions that were computed from deleted rows of a source."""
        definition, declared = self._definition(name), self.erasable.tables[name]
        if definition is None or not reads:
            return None
        values: set[Any] = set()
        for read in reads:
            if read.by is None or read.outside:
                return None
            touched = touched_partitions(
                self.erasable.engine, source, self.request_id, read.by, self.deleted[source]
            )
            if touched is None:
                return None
            values |= touched
        by = declared.overwritten_by
        column_type = declared.column(by).type if by else "date"
        return keys_holding(definition, definition.get_partition_keys(), values, column_type)

    def _keys_of_recomputed(self, name: str, source: str, reads: Collection[Input]) -> Keys:
        """Return the partitions that are computed from recomputed partitions of a source."""
        keys, by = self.known[source], self.erasable.tables[source].overwritten_by
        if keys is not None and not keys:
            return ()
        if keys is None or by is None or not reads:
            return None
        if any(read.by != by or read.outside for read in reads):
            return None
        return keys if self._definition(source) == self._definition(name) else None

    def _definition(self, name: str) -> dg.PartitionsDefinition | None:
        definition: dg.PartitionsDefinition | None
        definition = self.graph.get(asset_key(name)).partitions_def
        return definition

    def _inputs(self, name: str) -> dict[str, Input]:
        return inputs_of(self.graph.get(asset_key(name)).metadata)
