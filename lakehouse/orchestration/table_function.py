"""Registry of table functions: declaration, function and inputs of each asset."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import dagster as dg

from lakehouse.iceberg.read.inputs import Input
from lakehouse.tables.feed import Feed
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class TableFunction:
    """A declared table and its function; the function of a feed's table gets delivered rows."""

    table: IcebergTable
    compute: "Callable[..., DataFrame]"
    inputs: Mapping[str, Input] = field(default_factory=dict)
    partitions_def: dg.PartitionsDefinition | None = None
    feed: Feed | None = None


# Dagster definitions have no field for it: metadata would be shown.
_functions: "WeakKeyDictionary[dg.AssetsDefinition, TableFunction]" = WeakKeyDictionary()


def keep_function(asset: dg.AssetsDefinition, function: TableFunction) -> dg.AssetsDefinition:
    """Register the function of an asset, and return the asset."""
    _functions[asset] = function
    return asset


def function_of(asset: dg.AssetsDefinition) -> TableFunction | None:
    """Return the function of an asset; None if `iceberg_asset` or `feed_asset` did not make it."""
    return _functions.get(asset)


def functions_by_table(
    assets: Iterable[dg.AssetsDefinition | dg.AssetSpec],
) -> dict[str, TableFunction]:
    """Return the table functions by table name."""
    functions: dict[str, TableFunction] = {}
    for asset in assets:
        function = function_of(asset) if isinstance(asset, dg.AssetsDefinition) else None
        if function:
            functions[function.table.name] = function
    return functions
