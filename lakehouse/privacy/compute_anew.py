"""Tables that have erased people in their sums are computed anew: in order, and only the partitions
that are concerned where that can be told; all of a table in as few runs as their sizes allow.

A source that lost rows tells by its commits which partitions are concerned. One that was computed
anew itself has news like any other, for who was computed from it before.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakehouse.errors import DeclarationError, LakehouseError
from lakehouse.iceberg.erasure.erasure_commits import touched_partitions
from lakehouse.iceberg.metadata.history import read_history
from lakehouse.iceberg.read.stale_partitions import stale_of
from lakehouse.iceberg.read.stale_tables import is_stale
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.sums import Sums, SumsTable
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    import dagster as dg

    from lakehouse.iceberg.read.inputs import Input
    from lakehouse.orchestration.dagster_internals import AssetGraph
    from lakehouse.orchestration.pending_run import PendingRun


def compute_anew(
    erasable: Erasable,
    request_id: str,
    sums: Sums,
    lost: Mapping[str, int],
    *,
    done: Collection[str] = (),
    told: Callable[[str, bool], object] = lambda *_: None,
) -> None:
    """Compute anew what has the rows in its sums that a request took; Spark is started where
    there is any.

    Ask it before the past of the tables goes: their commits tell which partitions are concerned,
    and what the rows were.

    :param lost: how many rows the request took from the main of each table.
    :param done: tables that need not be computed once more.
    :param told: called with each table that is done, and whether anything of it was computed.
    :raises LakehouseError: when a table could not be computed; a call with what is done goes on.
    """
    if not set(sums.names) - set(done):
        return
    from lakehouse.orchestration.dagster_internals import asset_graph

    definitions = erasable.project(lambda: erasable.settings)
    concerned = _Concerned(erasable, request_id, asset_graph(definitions), lost)
    for table in sums.tables:
        if table.name in done:
            continue
        runs = concerned.runs(table)
        for run in runs:
            _compute(erasable, definitions, request_id, table.name, run)
        told(table.name, bool(runs))


def _compute(
    erasable: Erasable,
    definitions: "dg.Definitions",
    request_id: str,
    name: str,
    run: "PendingRun",
) -> None:
    import dagster as dg

    from lakehouse.orchestration.asset_keys import asset_key
    from lakehouse.orchestration.instance import open_instance
    from lakehouse.orchestration.runs import materialize
    from lakehouse.orchestration.runs_for_stale_tables import BACKFILL, RECOMPUTED_FOR_ERASURE

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
            f"{name} could not be computed anew without the people who were erased; expected its"
            " run to succeed.",
            next_step="`lakehouse alerts` says why; the same call again goes on from here.",
        )


@dataclass(frozen=True)
class _Concerned:
    """Tells what of a table is concerned, once its sources are as they shall be."""

    erasable: Erasable
    request_id: str
    graph: "AssetGraph"
    lost: Mapping[str, int]

    def runs(self, table: SumsTable) -> "list[PendingRun]":
        """Return the runs that compute what is concerned; none where nothing is."""
        from lakehouse.orchestration.asset_inputs import inputs_of
        from lakehouse.orchestration.asset_keys import asset_key
        from lakehouse.orchestration.partition_groups import grouped
        from lakehouse.orchestration.partition_rows import source_rows
        from lakehouse.orchestration.pending_run import PendingRun

        name = table.name
        node = self.graph.get(asset_key(name))
        inputs = inputs_of(node.metadata)
        reads = [*inputs.values()]
        if node.partitions_def is None:
            is_concerned = table.lost or any(
                self._has_news(table, source, reads) for source in table.anew
            )
            return [PendingRun((name,))] if is_concerned else []
        keys = node.partitions_def.get_partition_keys()
        touched = self._keys(table, node.partitions_def, keys, reads)
        declared = self.erasable.tables[name]
        rows = source_rows(
            self.erasable.engine, [(declared, inputs)], node.partitions_def, keys
        )
        owing = dict.fromkeys(touched, (name,))
        leaves_gaps = bool(inputs)
        groups = grouped(owing, keys, rows, leaves_gaps=leaves_gaps)
        return [
            PendingRun.of_partitions(
                (name,), group, keys, partitioned=(name,), leaves_gaps=leaves_gaps
            )
            for group in groups
        ]

    def _keys(
        self,
        table: SumsTable,
        definition: "dg.PartitionsDefinition",
        keys: Sequence[str],
        reads: "Sequence[Input]",
    ) -> Collection[str]:
        from lakehouse.orchestration.partition_bounds import keys_holding

        declared = self.erasable.tables[table.name]
        values: set[Any] = set()
        for source in sorted(table.lost):
            touched = self._touched(source, reads)
            if touched is None:
                return keys
            values |= touched
        for source in sorted(table.anew):
            stale = self._stale(table, declared, definition, source, reads)
            if stale is None:
                return keys
            values |= stale
        by = declared.overwritten_by
        column_type = declared.column(by).type if by else "date"
        return keys_holding(definition, keys, values, column_type)

    def _touched(self, source: str, reads: "Sequence[Input]") -> set[Any] | None:
        """Return the values of the partitions of a source that lost rows; None where any of
        the table's partitions may have been computed from them.
        """
        of_source = [read for read in reads if read.table == source]
        values: set[Any] = set()
        for read in of_source:
            if read.by is None or read.outside:
                return None
            touched = touched_partitions(
                self.erasable.engine, source, self.request_id, read.by, self.lost[source]
            )
            if touched is None:
                return None
            values |= touched
        return values if of_source else None

    def _stale(
        self,
        table: SumsTable,
        declared: IcebergTable,
        definition: "dg.PartitionsDefinition",
        source: str,
        reads: "Sequence[Input]",
    ) -> set[Any] | None:
        """Return the values that a source was computed anew for since the table was computed
        from it; None where any of the table's partitions may be concerned.
        """
        from lakehouse.orchestration.partition_bounds import all_partitions_of

        if not self._has_news(table, source, reads):
            return set()
        now = [read for read in reads if read.table == source and read.mode != "as_of"]
        columns = sorted({read.by for read in now if read.by})
        tells_all = all(read.by and (declared.versions or not read.outside) for read in now)
        main = read_history(self.erasable.engine, source).main
        if main is None or not tells_all or len(columns) != 1:
            return None
        every = all_partitions_of(declared, definition)
        until = main.snapshot_id
        try:
            return stale_of(self.erasable.engine, declared, source, columns[0], until, every)
        except DeclarationError:
            # The source has files of a partitioning that does not tell.
            return None

    def _has_news(self, table: SumsTable, source: str, reads: "Sequence[Input]") -> bool:
        """Whether the table was not yet computed from what a source is now; of what it reads as
        of the past, there is no news.
        """
        modes = {read.mode for read in reads if read.table == source}
        is_past = modes == {"as_of"}
        return not is_past and is_stale(self.erasable.engine, table.name, [source])
