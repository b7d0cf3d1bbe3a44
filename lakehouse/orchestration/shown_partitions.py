"""Selects the time partitions that the UI shows: only those that have or had rows."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, cast

import dagster as dg

from lakehouse.iceberg.metadata.existing_partitions import existing_extents
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.dagster_internals import NOTES_ITS_ASSETS, add_partitions
from lakehouse.orchestration.partitions_within import partitions_within
from lakehouse.orchestration.windows_with_rows import WindowsWithRows, forget_shown
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from lakehouse.iceberg.metadata.catalog import Catalog
    from lakehouse.orchestration.dagster_internals import AssetGraph

_MOST_AT_ONCE = 1_000
"""Partitions per statement; SQLite supports 32,766 parameters."""
_TRIES = 5


def shown_of(
    instance: dg.DagsterInstance,
    definition: dg.PartitionsDefinition | None,
    keys: Sequence[str],
) -> Sequence[str]:
    """Return the keys that the UI shows."""
    if not isinstance(definition, WindowsWithRows):
        return keys
    shown = {*instance.get_dynamic_partitions(definition.name)}
    return [key for key in keys if key in shown]


def show_partitions(
    instance: dg.DagsterInstance,
    definition: dg.PartitionsDefinition | None,
    keys: Iterable[str],
) -> set[str]:
    """Show partitions in the UI in time order; return the keys that were not shown before.

    Dagster stores the order of insertion and uses it for ranges, so later keys are inserted
    again. `show_existing` repairs an interrupted update.
    """
    if not isinstance(definition, WindowsWithRows):
        return set()
    new = {*keys} - {*instance.get_dynamic_partitions(definition.name)}
    if not new:
        return new
    forget_shown()
    expected = {*new}
    for _ in range(_TRIES):
        shown = [*instance.get_dynamic_partitions(definition.name)]
        if expected <= {*shown}:
            break
        expected |= {*shown}
        if _replace_shown(instance, definition.name, shown, sorted(expected)):
            break
    return new


def hide_partitions(
    instance: dg.DagsterInstance,
    definition: dg.PartitionsDefinition | None,
    keys: Iterable[str],
) -> None:
    """Hide partitions in the UI."""
    if isinstance(definition, WindowsWithRows):
        forget_shown()
        for key in keys:
            instance.delete_dynamic_partition(definition.name, key)


def _replace_shown(
    instance: dg.DagsterInstance, name: str, shown: Sequence[str], ordered: Sequence[str]
) -> bool:
    """Replace the shown keys; return whether no other process did at the same time."""
    alike = zip(shown, ordered, strict=False)
    kept = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], alike))
    for key in shown[kept:]:
        instance.delete_dynamic_partition(name, key)
    for at in range(kept, len(ordered), _MOST_AT_ONCE):
        if not add_partitions(instance, name, ordered[at : at + _MOST_AT_ONCE]):
            return False
    return True


def show_range(
    instance: dg.DagsterInstance,
    graph: "AssetGraph",
    assets: Iterable[dg.AssetKey],
    bounds: tuple[str, str],
    tags: Mapping[str, str],
) -> None:
    """Show all partitions of a run's range, unless its assets record their own partitions.

    Otherwise Dagster would resolve the range to the shown partitions only.

    :param tags: run tags.
    """
    if NOTES_ITS_ASSETS.items() <= tags.items():
        return
    for definition in {graph.get(asset).partitions_def for asset in assets}:
        if isinstance(definition, WindowsWithRows):
            keys = definition.get_partition_keys_in_range(dg.PartitionKeyRange(*bounds))
            show_partitions(instance, definition, keys)


def show_existing(
    instance: dg.DagsterInstance,
    graph: "AssetGraph",
    catalog: "Catalog",
    tables: Iterable[IcebergTable],
) -> None:
    """Show the partitions with rows, for example after Dagster's storage was reset.

    Files without a partition value in the metadata are ignored.
    """
    by_definition: dict[dg.PartitionsDefinition, set[str]] = {}
    for table in tables:
        definition = graph.get(asset_key(table)).partitions_def
        if isinstance(definition, WindowsWithRows) and catalog.has(table.name):
            keys = _keys_with_rows(catalog, table, definition)
            by_definition.setdefault(definition, set()).update(keys)
    for definition, keys in by_definition.items():
        show_partitions(instance, definition, keys)


def _keys_with_rows(
    catalog: "Catalog", table: IcebergTable, definition: WindowsWithRows
) -> set[str]:
    extents = existing_extents(catalog.load(table.name), cast(str, table.overwritten_by))
    if extents is None:
        return set()
    return {key for key, _ in partitions_within(table, definition, extents)}
