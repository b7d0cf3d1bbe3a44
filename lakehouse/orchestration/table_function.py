"""How a table is computed: its declaration, its function and what that reads, as an asset
file says it.
"""

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
    """A declared table and the function that computes it.

    Of a table that a feed fills, the function is given the delivered rows.
    """

    table: IcebergTable
    compute: "Callable[..., DataFrame]"
    inputs: Mapping[str, Input] = field(default_factory=dict)
    partitions_def: dg.PartitionsDefinition | None = None
    feed: Feed | None = None


# Dagster's definition of an asset has no place for it: what stands in its metadata is shown.
_functions: "WeakKeyDictionary[dg.AssetsDefinition, TableFunction]" = WeakKeyDictionary()


def keep_function(asset: dg.AssetsDefinition, function: TableFunction) -> dg.AssetsDefinition:
    """Remember what an asset was made of, and return the asset."""
    _functions[asset] = function
    return asset


def function_of(asset: dg.AssetsDefinition) -> TableFunction | None:
    """Return what an asset was made of; None of one that was made by another way than
    `iceberg_asset` and `feed_asset`.
    """
    return _functions.get(asset)


def functions_by_table(
    assets: Iterable[dg.AssetsDefinition | dg.AssetSpec],
) -> dict[str, TableFunction]:
    """Return, by the name of the table, what the assets were made of."""
    functions: dict[str, TableFunction] = {}
    for asset in assets:
        function = function_of(asset) if isinstance(asset, dg.AssetsDefinition) else None
        if function:
            functions[function.table.name] = function
    return functions
