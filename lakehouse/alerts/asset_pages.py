"""Freshness policies of tables, and links on their pages in Dagster's UI."""

from collections.abc import Iterable, Mapping, Sequence
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
    """Return the assets with freshness policies and links.

    :param health: the table of measurements of tables.
    :param upkeep: the table of maintenance steps.
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

    return [
        asset.map_asset_specs(shown) if isinstance(asset, dg.AssetsDefinition) else shown(asset)
        for asset in assets
    ]


def fresh_windows(
    assets: Iterable[Asset], declared: Mapping[str, IcebergTable], feeds: Iterable[Feed]
) -> dict[dg.AssetKey, timedelta]:
    """Return the maximum age of each table without partitions: its own declaration, or else the
    most frequent of its upstream feeds.

    A policy of Dagster applies to a table, not to its partitions.
    """
    computed = [asset for asset in assets if isinstance(asset, dg.AssetsDefinition)]
    parents = {
        spec.key: [dep.asset_key for dep in spec.deps]
        for asset in computed
        for spec in asset.specs
    }
    partitioned = {key for asset in computed if asset.partitions_def for key in asset.keys}
    delivered = {
        asset_key(feed.table): feed.expected_within for feed in feeds if feed.expected_within
    }
    windows: dict[dg.AssetKey, timedelta] = {}
    for key in parents.keys() - partitioned:
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
