"""A declared table as a Dagster asset: one function computes it, everything else follows from the declaration."""

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import dagster as dg

from lakehouse.errors import DeclarationError
from lakehouse.iceberg.outcome import Outcome
from lakehouse.iceberg.read import Input
from lakehouse.iceberg.run import Run
from lakehouse.iceberg.table import IcebergTable
from lakehouse.resources.asset_inputs import reads_metadata
from lakehouse.resources.keys import asset_key
from lakehouse.resources.table_asset import Written, table_asset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def iceberg_asset(
    table: IcebergTable,
    *,
    inputs: Mapping[str, Input] | None = None,
    partitions_def: dg.PartitionsDefinition | None = None,
    automation_condition: dg.AutomationCondition | None = None,
) -> "Callable[[Callable[..., DataFrame]], dg.AssetsDefinition]":
    """Make an asset of the function that computes a table from its inputs.

    :param inputs: what the function is given, by the names of its parameters: frames, pinned when the run starts.
        Of a table that is computed by partitions, those with `by` tell which partitions are owed; the others owe none.
    :raises DeclarationError: when the function's parameters are not the inputs.
    """
    given = dict(inputs or {})

    def decorate(compute: "Callable[..., DataFrame]") -> dg.AssetsDefinition:
        _check_parameters(table, compute, given)

        def materialize(context: dg.AssetExecutionContext, run: Run) -> Written:
            outcome = context.resources.io_manager.write(table, compute, given, run)
            return Written(outcome, read=_read(outcome, table, given))

        return table_asset(
            table,
            materialize,
            description=inspect.getdoc(compute),
            deps=_upstream(table, given),
            metadata=reads_metadata(given),
            partitions_def=partitions_def,
            automation_condition=automation_condition,
        )

    return decorate


def _upstream(table: IcebergTable, inputs: Mapping[str, Input]) -> list[dg.AssetKey]:
    """Return what a table is computed from, each once; what stands of its own is no such thing."""
    read = dict.fromkeys(given.table for given in inputs.values())
    return [asset_key(name) for name in read if name != table.name]


def _read(outcome: Outcome, table: IcebergTable, inputs: Mapping[str, Input]) -> dict[str, int | None]:
    """Return the snapshots of other tables that were read as they were then, by table."""
    pins = (pin for name, pin in outcome.pins.items() if inputs[name].mode != "as_of")
    return {pin.table: pin.snapshot_id for pin in pins if pin.table != table.name}


def _check_parameters(table: IcebergTable, compute: Callable[..., Any], inputs: Mapping[str, Input]) -> None:
    found = list(inspect.signature(compute).parameters)
    if set(found) != set(inputs):
        raise DeclarationError(
            f"{table.name}: the function {compute.__name__} takes {', '.join(found) or 'nothing'}; "
            f"expected the inputs, {', '.join(inputs) or 'none'}.",
            next_step="Name its parameters as the keys of inputs=….",
        )
