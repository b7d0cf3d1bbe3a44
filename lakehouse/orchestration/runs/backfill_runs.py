"""Recompute tables and partitions, also to evaluate their quarantined rows again."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import dagster as dg

from lakehouse.errors import UsageError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.read.quarantined_rows import quarantined_keys
from lakehouse.iceberg.read.stale_partitions import quarantined_values
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.asset_specs import inputs_of
from lakehouse.orchestration.dagster_internals import asset_graph
from lakehouse.orchestration.partitions.partition_bounds import keys_holding
from lakehouse.orchestration.partitions.pending_run import PendingRun
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.run_in_process import MakeDefinitions, materialize
from lakehouse.orchestration.runs.run_result import RunResult
from lakehouse.orchestration.runs.runs_for_stale_tables import BACKFILL, Downstream
from lakehouse.settings import Settings
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from lakehouse.orchestration.dagster_internals import AssetGraph


def backfill(
    project: MakeDefinitions,
    settings: Settings,
    table: str,
    first: str | None = None,
    last: str | None = None,
) -> RunResult:
    """Recompute a table or a range of its partitions, and its downstream assets.

    :param first: first partition key; None for an unpartitioned table.
    :param last: last partition key; default: `first`.
    :raises UsageError: the partitions do not match the table, or it has no inputs.
    """
    here = project(lambda: settings)
    bounds = _checked_range(here, table, first, last)
    downstream = Downstream(asset_graph(here), table)
    run = PendingRun(downstream.with_alike([table]))
    if bounds:
        run = replace(run, first=bounds[0], last=bounds[1])
        if bounds[0] != bounds[1] and downstream.leaves_gaps([table]):
            # Name all keys: Dagster itself would use only those that the UI shows.
            run = replace(run, only=(bounds,))
    return run_backfill(here, settings, table, run)


def run_backfill(
    definitions: dg.Definitions, settings: Settings, table: str, run: PendingRun
) -> RunResult:
    """Recompute what `run` selects, and its downstream assets; inputs are not checked first."""
    with open_instance(settings) as instance:
        return materialize(
            definitions,
            instance,
            replace(run, guards=()).selection,
            partition=run.partitions,
            tags={BACKFILL: table, **run.tags},
        )


def run_backfills(
    definitions: dg.Definitions, settings: Settings, table: str, runs: Iterable[PendingRun]
) -> list[RunResult]:
    """Execute runs in order; stop after the first failure."""
    results: list[RunResult] = []
    for run in runs:
        results.append(run_backfill(definitions, settings, table, run))
        if not results[-1].success:
            break
    return results


def _checked_range(
    definitions: dg.Definitions, table: str, first: str | None, last: str | None
) -> tuple[str, str] | None:
    """Return the first and last partition key; None for an unpartitioned table."""
    graph = asset_graph(definitions)
    key = asset_key(table)
    node = graph.get(key) if graph.has(key) else None
    if node is None or node.partitions_def is None:
        if first is not None or last is not None:
            raise UsageError(
                f"{table} has no partitions; expected no --from and no --to.",
                next_step=f"`lakehouse backfill {table}` computes all of it.",
            )
        if node is None or not inputs_of(node.metadata):
            raise UsageError(
                f"{table} is computed from no other table; expected one that is.",
                next_step="`lakehouse ingest` puts the files of a feed into its table.",
            )
        return None
    keys = node.partitions_def.get_partition_keys()
    if first is None:
        raise UsageError(
            f"{table} is computed by partitions, and no --from is given; expected one of"
            f" {keys[0]} to {keys[-1]}."
        )
    _check_keys(keys, table, first, last or first)
    return first, last or first


def _check_keys(keys: Sequence[str], table: str, first: str, last: str) -> None:
    for key in (first, last):
        if key not in keys:
            raise UsageError(
                f"{table} has no partition {key!r}; it has {keys[0]} to {keys[-1]}."
            )
    if keys.index(first) > keys.index(last):
        raise UsageError(
            f"--from {first} comes after --to {last}; expected the earlier one first."
        )


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
    before = quarantined_keys(engine, table)
    here = project(lambda: settings)
    pending = _runs(engine, asset_graph(here), table) if before else []
    runs = run_backfills(here, settings, table.name, pending)
    after = quarantined_keys(engine, table)
    return Replayed(len(before), len(before - after), len(after - before), tuple(runs))


def _runs(engine: Engine, graph: "AssetGraph", table: IcebergTable) -> list[PendingRun]:
    key = asset_key(table.name)
    node = graph.get(key) if graph.has(key) else None
    inputs = inputs_of(node.metadata) if node else {}
    if not inputs:
        raise UsageError(
            f"{table.name} is computed from no other table, whose rows could be evaluated again.",
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
    values = quarantined_values(engine, table, inputs)
    holding = keys_holding(definition, keys, values, table.column(table.overwritten_by).type)
    return downstream.partition_runs(engine, [table], definition, {table.name: holding})
