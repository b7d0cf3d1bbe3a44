"""What an operator finds on the page of a table beside what it declares itself: whether it is as
fresh as its feeds deliver, and where its health and its upkeep are.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta

import dagster as dg

from lakehouse.orchestration.asset_keys import asset_key, table_name
from lakehouse.orchestration.metadata_keys import DeclaredMetadata
from lakehouse.tables.feed import Feed
from lakehouse.tables.table import IcebergTable

Asset = dg.AssetsDefinition | dg.AssetSpec


def with_pages(
    assets: Sequence[Asset],
    declared: Mapping[str, IcebergTable],
    feeds: Iterable[Feed],
    *,
    health: IcebergTable,
    upkeep: IcebergTable,
) -> list[Asset]:
    """Return the assets with what their pages show.

    :param health: the table that has what was measured of the tables.
    :param upkeep: the table that has the steps of their upkeep.
    """
    windows = fresh_windows(assets, declared, feeds)
    links = DeclaredMetadata(
        table_health=asset_key(health.name), upkeep_runs=asset_key(upkeep.name)
    ).to_metadata()

    def shown(spec: dg.AssetSpec) -> dg.AssetSpec:
        described = spec.merge_attributes(metadata=links)
        window = windows.get(spec.key)
        if window is None or spec.freshness_policy:
            return described
        policy = dg.FreshnessPolicy.time_window(fail_window=window)
        return described.replace_attributes(freshness_policy=policy)

    return [_mapped(asset, shown) for asset in assets]


def fresh_windows(
    assets: Iterable[Asset], declared: Mapping[str, IcebergTable], feeds: Iterable[Feed]
) -> dict[dg.AssetKey, timedelta]:
    """Return for each table that is computed as a whole how old it may become: what it declares,
    or else what the feeds above it do, the most frequent where there are several.

    Dagster's policy is for a table as a whole, and one of partitions is late by each of them; a
    quarantine is written where rows are refused, and is never late.
    """
    computed = [asset for asset in assets if isinstance(asset, dg.AssetsDefinition)]
    parents = {
        spec.key: [dep.asset_key for dep in spec.deps]
        for asset in computed
        for spec in asset.specs
    }
    delivered = {
        asset_key(feed.table): feed.expected_within for feed in feeds if feed.expected_within
    }
    windows: dict[dg.AssetKey, timedelta] = {}
    for key in parents.keys() - _partitioned(computed):
        table = declared.get(table_name(key))
        above = [delivered[one] for one in _with_upstream(key, parents) if one in delivered]
        window = (table.freshness if table else None) or min(above, default=None)
        if window:
            windows[key] = window
    return windows


def _with_upstream(
    key: dg.AssetKey, parents: Mapping[dg.AssetKey, Sequence[dg.AssetKey]]
) -> set[dg.AssetKey]:
    reached: set[dg.AssetKey] = set()
    waiting = [key]
    while waiting:
        current = waiting.pop()
        if current not in reached:
            reached.add(current)
            waiting.extend(parents.get(current, ()))
    return reached


def _partitioned(assets: Iterable[dg.AssetsDefinition]) -> set[dg.AssetKey]:
    return {key for asset in assets if asset.partitions_def for key in asset.keys}


def _mapped(asset: Asset, change: Callable[[dg.AssetSpec], dg.AssetSpec]) -> Asset:
    if isinstance(asset, dg.AssetsDefinition):
        return asset.map_asset_specs(change)
    return change(asset)
