"""A declared table as a Dagster asset: one function computes it, everything else follows from the declaration."""

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import dagster as dg

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.outcome import Outcome, Quarantined, Refused, RuleResult
from lakehouse.iceberg.read import Input
from lakehouse.iceberg.run import Run
from lakehouse.iceberg.table import IcebergTable
from lakehouse.resources.checks import Evaluated, check_result, check_specs, results_of
from lakehouse.resources.iceberg_io import IcebergIOManager, run_of
from lakehouse.resources.keys import asset_key
from lakehouse.resources.metadata import declared_metadata, quarantined_metadata, written_metadata
from lakehouse.resources.refusal import refusal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Written:
    """What an asset did: the outcome of its write, how many rows it was given, and what else there is to show."""

    outcome: Outcome
    nr_rows: int
    metadata: Mapping[str, Any] = field(default_factory=dict)


Materialize = Callable[[dg.AssetExecutionContext, Run], Written]


def iceberg_asset(
    table: IcebergTable,
    *,
    inputs: Mapping[str, Input] | None = None,
    partitions_def: dg.PartitionsDefinition | None = None,
    automation_condition: dg.AutomationCondition | None = None,
) -> "Callable[[Callable[..., DataFrame]], dg.AssetsDefinition]":
    """Make an asset of the function that computes a table from its inputs.

    :param inputs: what the function is given, by the names of its parameters: frames, pinned when the run starts.
    :raises DeclarationError: when the function's parameters are not the inputs.
    """
    given = dict(inputs or {})

    def decorate(compute: "Callable[..., DataFrame]") -> dg.AssetsDefinition:
        _check_parameters(table, compute, given)

        def materialize(context: dg.AssetExecutionContext, run: Run) -> Written:
            outcome = context.resources.io_manager.write(table, compute, given, run)
            read = sum(pin.rows or 0 for pin in outcome.pins.values())
            return Written(outcome, read if given else getattr(outcome, "added_rows", 0))

        return table_asset(
            table,
            materialize,
            description=inspect.getdoc(compute),
            deps=[asset_key(read.table) for read in given.values()],
            partitions_def=partitions_def,
            automation_condition=automation_condition,
        )

    return decorate


def table_asset(
    table: IcebergTable,
    materialize: Materialize,
    *,
    description: str | None,
    deps: Sequence[dg.AssetKey] = (),
    kinds: frozenset[str] = frozenset(),
    resources: frozenset[str] = frozenset(),
    partitions_def: dg.PartitionsDefinition | None = None,
    automation_condition: dg.AutomationCondition | None = None,
) -> dg.AssetsDefinition:
    """Make an asset of a table and of what writes it; its checks can be run alone, and then nothing is written.

    :param resources: keys of what `materialize` needs beside the IO manager.
    """
    spec = table_spec(table, description=description, deps=deps, kinds=kinds | {"spark"})

    def body(context: dg.AssetExecutionContext) -> Iterator[dg.AssetCheckResult | dg.MaterializeResult]:
        io, run = context.resources.io_manager, _run(context, table, partitions_def)
        if not context.selected_asset_keys:
            found, evaluated = io.evaluate(table, run)
            yield from _selected(context, table, found, evaluated)
        else:
            yield from _events(context, io, table, materialize(context, run))

    with warnings.catch_warnings():
        # `backfill_policy` has been beta since it came with Dagster 1.3, and each start would say so.
        warnings.simplefilter("ignore", dg.BetaWarning)
        return dg.multi_asset(
            name=table.name.replace(".", "__"),
            specs=[spec.replace_attributes(automation_condition=automation_condition, skippable=True)],
            check_specs=check_specs(table),
            partitions_def=partitions_def,
            backfill_policy=dg.BackfillPolicy.single_run() if partitions_def else None,
            can_subset=True,
            pool=table.name,
            required_resource_keys={"io_manager", *resources},
        )(body)


def table_spec(
    table: IcebergTable,
    *,
    description: str | None = None,
    deps: Sequence[dg.AssetKey] = (),
    kinds: frozenset[str] = frozenset(),
) -> dg.AssetSpec:
    """Return what the declaration says of a table to Dagster's catalog."""
    return dg.AssetSpec(
        asset_key(table.name),
        description=description or table.comment,
        deps=deps,
        group_name=table.namespace,
        kinds={"iceberg", table.namespace, *kinds},
        owners=_owners(table),
        tags=table.tags,
        metadata=declared_metadata(table),
    )


def quarantine_spec(table: IcebergTable) -> dg.AssetSpec | None:
    """Return the quarantine of a table as an asset that the table's own runs fill; None where it has none."""
    if table.quarantine is None:
        return None
    return table_spec(table.quarantine, deps=[asset_key(table.name)])


def _events(
    context: dg.AssetExecutionContext, io: IcebergIOManager, table: IcebergTable, written: Written
) -> Iterator[dg.AssetCheckResult | dg.MaterializeResult]:
    outcome = written.outcome
    checks = _selected(context, table, outcome.results, Evaluated.by(outcome))
    if outcome.quarantined and table.quarantine:
        context.log_event(_quarantine_event(io, table.quarantine, outcome.quarantined))
    if isinstance(outcome, Refused):
        yield from checks
        raise refusal(outcome, written.metadata)
    yield dg.MaterializeResult(
        asset_key=asset_key(table.name),
        metadata={
            "nr_rows": written.nr_rows,
            **written_metadata(io.engine.catalog, table, outcome),
            **written.metadata,
        },
        # Together with its check results, so that they point at this materialization.
        check_results=checks,
        data_version=dg.DataVersion(str(outcome.snapshot_id)) if outcome.snapshot_id else None,
    )


def _quarantine_event(
    io: IcebergIOManager, quarantine: IcebergTable, found: Quarantined
) -> dg.AssetMaterialization:
    return dg.AssetMaterialization(
        asset_key(quarantine.name),
        description=f"{found.rows} rows of this run were refused.",
        metadata=quarantined_metadata(io.engine.catalog, quarantine, found),
        tags={"dagster/data_version": str(found.snapshot_id)},
    )


def _owners(table: IcebergTable) -> list[str]:
    # Dagster takes addresses and teams.
    if not table.owner:
        return []
    return [table.owner if "@" in table.owner or ":" in table.owner else f"team:{table.owner}"]


def _selected(
    context: dg.AssetExecutionContext, table: IcebergTable, found: Sequence[RuleResult], evaluated: Evaluated
) -> list[dg.AssetCheckResult]:
    names = {key.name for key in context.selected_asset_check_keys}
    results = [result for result in results_of(table, found) if result.rule.name in names]
    return [check_result(table, result, evaluated) for result in results]


def _run(
    context: dg.AssetExecutionContext, table: IcebergTable, definition: dg.PartitionsDefinition | None
) -> Run:
    if definition is None or not (context.has_partition_key or context.has_partition_key_range):
        return Run(context.run.run_id)
    return run_of(context.run.run_id, definition, context.partition_keys, table)


def _check_parameters(table: IcebergTable, compute: Callable[..., Any], inputs: Mapping[str, Input]) -> None:
    found = list(inspect.signature(compute).parameters)
    if set(found) != set(inputs):
        raise DeclarationError(
            f"{table.name}: the function {compute.__name__} takes {', '.join(found) or 'nothing'}; "
            f"expected the inputs, {', '.join(inputs) or 'none'}.",
            next_step="Name its parameters as the keys of inputs=….",
        )
