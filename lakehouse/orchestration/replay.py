"""Re-evaluates the quarantined rows of a table with only the backfill runs that read them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse.errors import UsageError
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.read.refused_partitions import refused_values
from lakehouse.iceberg.read.refused_rows import refused_keys
from lakehouse.orchestration.asset_inputs import inputs_of
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.backfill import run_backfills
from lakehouse.orchestration.dagster_internals import asset_graph
from lakehouse.orchestration.partition_bounds import keys_holding
from lakehouse.orchestration.pending_run import PendingRun
from lakehouse.orchestration.run_result import RunResult
from lakehouse.orchestration.runs import MakeDefinitions
from lakehouse.orchestration.runs_for_stale_tables import Downstream
from lakehouse.settings import Settings
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from lakehouse.orchestration.dagster_internals import AssetGraph


@dataclass(frozen=True)
class Replayed:
    """Result of a replay: quarantined rows before it, released rows, new rows, and the runs."""

    rows: int
    left: int = 0
    new_rows: int = 0
    runs: tuple[RunResult, ...] = ()

    @property
    def success(self) -> bool:
        """Whether all rows were re-evaluated."""
        return all(run.success for run in self.runs)


def replay(
    project: MakeDefinitions, settings: Settings, engine: Engine, table: IcebergTable
) -> Replayed:
    """Re-evaluate the quarantined rows of a table with its current function and rules.

    Passing rows are inserted, and downstream assets are updated. Idempotent; stops after a
    failed run.

    :raises UsageError: the table has no input tables.
    """
    before = refused_keys(engine, table)
    here = project(lambda: settings)
    pending = _runs(engine, asset_graph(here), table) if before else []
    runs = run_backfills(here, settings, table.name, pending)
    after = refused_keys(engine, table)
    return Replayed(len(before), len(before - after), len(after - before), tuple(runs))


def _runs(engine: Engine, graph: "AssetGraph", table: IcebergTable) -> list[PendingRun]:
    key = asset_key(table.name)
    node = graph.get(key) if graph.has(key) else None
    inputs = inputs_of(node.metadata) if node else {}
    if not inputs:
        raise UsageError(
            f"{table.name} is computed from no other table, whose rows could be judged again.",
            next_step=(
                "Of a feed's table, take a file out by `lakehouse reject`, and put it into the"
                " inbox once more."
            ),
        )
    downstream = Downstream(graph, table.name)
    definition = node.partitions_def if node else None
    if definition is None:
        return [PendingRun(downstream.with_alike([table.name]))]
    assert table.overwritten_by is not None
    keys = definition.get_partition_keys()
    values = refused_values(engine, table, inputs)
    holding = keys_holding(definition, keys, values, table.column(table.overwritten_by).type)
    return downstream.partition_runs(engine, [table], definition, {table.name: holding})
