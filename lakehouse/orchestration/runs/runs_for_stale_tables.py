"""Plans the runs for stale tables downstream of a table, from table metadata only."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain, groupby
from typing import TYPE_CHECKING

import dagster as dg

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.read.inputs import Input
from lakehouse.iceberg.read.stale_partitions import stale_values
from lakehouse.iceberg.read.stale_tables import is_stale
from lakehouse.orchestration.asset_keys import asset_key, table_name
from lakehouse.orchestration.asset_specs import inputs_of
from lakehouse.orchestration.blocked_tables import mains
from lakehouse.orchestration.dagster_internals import selected_assets
from lakehouse.orchestration.partitions.partition_bounds import all_partitions_of, keys_holding
from lakehouse.orchestration.partitions.partition_groups import grouped, source_rows
from lakehouse.orchestration.partitions.pending_run import PendingRun
from lakehouse.spark.processes import HIDDEN_PREFIX
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from lakehouse.orchestration.dagster_internals import AssetGraph

_Mains = tuple[tuple[str, int | None], ...]
"""Current snapshot id by table."""
INCREMENTAL = {f"{HIDDEN_PREFIX}catch_up": "true"}
"""Tag of an incremental run, which computes stale partitions. Stored runs have this key."""
BACKFILL = "lakehouse/backfill"
"""Tag of a full recompute that a user requested: the table name."""
RECOMPUTED_FOR_ERASURE = "lakehouse/computed_anew_for"
"""Tag of a full recompute without erased data subjects: the id of the erasure request."""


def is_full_recompute(tags: Mapping[str, str]) -> bool:
    """Whether a run reads all source rows of its partitions; true for runs started by users."""
    return not INCREMENTAL.items() <= tags.items()


class Downstream:
    """A table and its downstream tables, and which of them are stale."""

    def __init__(self, graph: "AssetGraph", root: str) -> None:
        """Read the definitions; reads no tables.

        :param root: the most upstream table.
        """
        self._graph = graph
        self._known_after: dict[str, tuple[str, ...]] = {}
        self.root = root

    @cached_property
    def tables(self) -> tuple[str, ...]:
        """The table and its downstream tables in topological order."""
        return self._after(self.root)

    @property
    def everything(self) -> PendingRun:
        """The run that computes all of them."""
        return PendingRun(self.tables, guards=self._guards(self.tables))

    @property
    def is_alike(self) -> bool:
        """Whether all partitioned tables have the same partitions."""
        return len({self._partitions_def(table) for table in self._partitioned}) <= 1

    def stages(
        self, engine: Engine, declared: Mapping[str, IcebergTable], *, has_arrivals: bool
    ) -> Iterator[list[PendingRun]]:
        """Yield the stale runs in stages; each stage is planned after the previous one is done.

        Order: unpartitioned tables, partitions, unpartitioned tables downstream of them; repeated
        if partitions are computed from those. Can start Spark, see `read.stale_partitions`.

        :param has_arrivals: whether new files exist for the root table.
        """
        yield from self._until_current(
            engine,
            lambda is_first: self.with_stale_partitions(
                engine, has_arrivals=has_arrivals and is_first
            ),
        )
        if not self._between:
            yield from self._round(engine, declared)
            return
        requested: set[tuple[PendingRun, _Mains]] = set()
        # Each round updates at least one more of the intermediate tables.
        for _ in range(len(self._between) + 1):
            has_news = False
            for stage in self._round(engine, declared):
                state = self._mains(engine)
                # Skip runs that were already requested for the same table state.
                new = [run for run in stage if (run, state) not in requested]
                requested.update((run, state) for run in new)
                has_news |= bool(new)
                yield new
            if not has_news:
                return

    def _round(
        self, engine: Engine, declared: Mapping[str, IcebergTable]
    ) -> Iterator[list[PendingRun]]:
        yield from self.stale_partition_runs(engine, declared)
        yield from self._until_current(engine, lambda _: self.late_tables(engine))

    def _until_current(
        self, engine: Engine, stale_tables: Callable[[bool], list[str]]
    ) -> Iterator[list[PendingRun]]:
        """Yield the runs of stale tables, and then of plain assets that became stale by these.

        A plain asset without a table has no watermark, and is stale as long as its sources have
        rows: it has a run of its own, whose digest shows whether it was requested before.

        :param stale_tables: returns the stale tables; its argument is whether it is the first call.
        """
        requested: list[list[str]] = []
        done: set[str] = set()
        while (tables := stale_tables(not requested)) and tables not in requested:
            requested.append(tables)
            without_table = {name for name in tables if self._has_no_table(engine, name)}
            yield self._unpartitioned_run(name for name in tables if name not in without_table)
            yield self._unpartitioned_run(
                name for name in tables if name in without_table - done
            )
            done |= without_table

    def _has_no_table(self, engine: Engine, name: str) -> bool:
        return self.is_plain(name) and not engine.catalog.has(name)

    def with_stale_partitions(self, engine: Engine, *, has_arrivals: bool) -> list[str]:
        """Return the stale unpartitioned tables in order, including their downstream tables.

        A plain asset becomes stale only after its source has changed. Partitioned tables and
        their downstream tables are left to `stale_partition_runs`.

        :param has_arrivals: whether new files exist for the root table.
        """
        first = {self.root} if has_arrivals else set()
        return self._stale(
            engine, [table for table in self.tables if table not in self._following], first
        )

    def stale_partition_runs(
        self, engine: Engine, declared: Mapping[str, IcebergTable]
    ) -> Iterator[list[PendingRun]]:
        """Yield the runs of stale partitions, oldest first, in as few runs as possible.

        Tables with different partitions have separate stages, since a key can be a day or a
        month. Rows without a partition are part of any run; without stale partitions, the newest
        partition is computed. Can start Spark, see `read.stale_partitions`.
        """
        partitioned = [
            table for table in self.tables if table in self._partitioned and table in declared
        ]
        for definition, tables in groupby(partitioned, self._partitions_def):
            assert definition is not None
            declared_alike = [declared[table] for table in tables]
            yield self._stale_runs(engine, declared_alike, definition)

    def _stale_runs(
        self,
        engine: Engine,
        tables: Sequence[IcebergTable],
        definition: dg.PartitionsDefinition,
    ) -> list[PendingRun]:
        keys = definition.get_partition_keys()
        stale: dict[str, set[str]] = {}
        for table in tables:
            every = all_partitions_of(table, definition)
            values = stale_values(engine, table, self._inputs(table.name), every)
            stale[table.name] = keys_holding(definition, keys, values, _type_of(table))
            for parent in self.sources(table.name):
                stale[table.name] |= stale.get(parent, set())
        return self.partition_runs(engine, tables, definition, stale)

    def partition_runs(
        self,
        engine: Engine,
        tables: Sequence[IcebergTable],
        definition: dg.PartitionsDefinition,
        chosen: Mapping[str, Collection[str]],
    ) -> list[PendingRun]:
        """Return the runs of chosen partitions and their downstream assets.

        :param tables: tables with these partitions, in topological order.
        :param chosen: by table, the keys to compute.
        """
        keys = definition.get_partition_keys()
        owing = {
            key: frozenset(table for table in chosen if key in chosen[table])
            for key in set().union(*chosen.values())
        }
        if not owing:
            return []
        read = [(table, self._inputs(table.name)) for table in tables]
        rows = source_rows(engine, read, definition, keys)
        leaves_gaps = self.leaves_gaps(set().union(*owing.values()))
        pending_run = partial(
            PendingRun.of_partitions,
            keys=keys,
            partitioned=self._partitioned,
            leaves_gaps=leaves_gaps,
        )
        runs = []
        for group in grouped(owing, keys, rows, leaves_gaps=leaves_gaps):
            tables_of_group = self.with_alike(owing[group[0]])
            guards = self._guards(tables_of_group)
            ranges = grouped(dict.fromkeys(group, ()), keys, leaves_gaps=False)
            parts = [pending_run(tables_of_group, part, guards=guards) for part in ranges]
            if len(parts) == 1:
                parts = []
            runs.append(pending_run(tables_of_group, group, guards=guards, parts=parts))
        return runs

    def late_tables(self, engine: Engine) -> list[str]:
        """Return stale unpartitioned tables that are downstream of partitioned tables."""
        return self._stale(
            engine,
            [table for table in self.tables if table in self._following - self._partitioned],
        )

    def with_alike(self, tables: Collection[str]) -> tuple[str, ...]:
        """Return tables of the same partitions and the downstream tables of the same run.

        Tables that also depend on other partitions are computed by a later run.
        """
        kinds = {self._partitions_def(table) for table in tables}
        reached = {after for table in tables for after in self._after(table)}
        of_other_partitions = (
            self._after(table)
            for table in self._partitioned
            if self._partitions_def(table) not in kinds
        )
        # Sources of the tables were computed before.
        later: set[str] = set()
        for after in of_other_partitions:
            if not set(after) & set(tables):
                later.update(after)
        return tuple(table for table in self.tables if table in reached - later)

    def leaves_gaps(self, tables: Collection[str]) -> bool:
        """Whether a run can skip partitions: plain Dagster assets ignore our run tag."""
        return all(self._inputs(table) for table in self.with_alike(tables))

    def sources(self, table: str) -> list[str]:
        """Return the direct upstream tables."""
        return [table_name(parent) for parent in self._graph.get(asset_key(table)).parent_keys]

    def is_plain(self, table: str) -> bool:
        """Whether a table is a plain asset: without declared inputs, each run executes it."""
        return bool(self.sources(table)) and not self._inputs(table)

    def read_now(self, table: str) -> list[str]:
        """Return the sources that a table reads at their current state, not at a past one."""
        inputs = self._inputs(table).values()
        past = {declared.table for declared in inputs if declared.mode == "as_of"}
        now = {declared.table for declared in inputs if declared.mode != "as_of"}
        return [source for source in self.sources(table) if source in now or source not in past]

    def _inputs(self, table: str) -> dict[str, Input]:
        return inputs_of(self._graph.get(asset_key(table)).metadata)

    def _unpartitioned_run(self, tables: Iterable[str]) -> list[PendingRun]:
        tables = tuple(tables)
        return [PendingRun(tables, guards=self._guards(tables))] if tables else []

    def _guards(self, tables: Iterable[str]) -> tuple[dg.AssetCheckKey, ...]:
        """Return the standalone blocking checks of sources that are not part of the run."""
        graph, computed = self._graph, set(tables)
        read = {source for table in computed for source in self.sources(table)} - computed
        return tuple(
            check
            for source in sorted(read)
            for check in sorted(graph.get(asset_key(source)).check_keys)
            if graph.get(check).blocking and not graph.assets_def_for_key(check).keys
        )

    def _stale(
        self, engine: Engine, tables: Iterable[str], first: Iterable[str] = ()
    ) -> list[str]:
        stale: list[str] = []
        for table in tables:
            sources = self.sources(table)
            changing = {name for name in stale if self.is_plain(name)}
            if not self.is_plain(table):
                changing = set(stale)
            if (
                table in first
                or changing.intersection(sources)
                or is_stale(engine, table, sources)
            ):
                stale.append(table)
        return stale

    def _after(self, table: str) -> tuple[str, ...]:
        if table not in self._known_after:
            graph = self._graph
            selection = dg.AssetSelection.assets(asset_key(table)).downstream()
            reached = selected_assets(selection, graph)
            self._known_after[table] = tuple(
                table_name(key)
                for key in graph.toposorted_asset_keys
                if key in reached and graph.get(key).is_executable
            )
        return self._known_after[table]

    def _partitions_def(self, table: str) -> dg.PartitionsDefinition | None:
        return self._graph.get(asset_key(table)).partitions_def

    @cached_property
    def _partitioned(self) -> set[str]:
        return {table for table in self.tables if self._partitions_def(table) is not None}

    @cached_property
    def _following(self) -> set[str]:
        return {after for table in self._partitioned for after in self._after(table)}

    @cached_property
    def _between(self) -> set[str]:
        """Unpartitioned tables between partitioned tables."""
        late = self._following - self._partitioned
        return {table for table in late if self._partitioned & set(self._after(table))}

    def _mains(self, engine: Engine) -> _Mains:
        sources = chain.from_iterable(map(self.sources, self.tables))
        return tuple(mains(engine, sorted({*self.tables, *sources})).items())


def _type_of(table: IcebergTable) -> str:
    return table.column(table.overwritten_by).type if table.overwritten_by else "date"
