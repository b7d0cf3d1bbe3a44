"""Freshness policies of tables, and links on their pages in Dagster's UI."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import cache

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
    computed = [asset for asset in assets if isinstance(asset, dg.AssetsDefinition)]
    partitioned = {key for asset in computed if asset.partitions_def for key in asset.keys}
    specs = [spec for asset in computed for spec in asset.specs]
    parents = {spec.key: [dep.asset_key for dep in spec.deps] for spec in specs}
    delivered = {feed.table: feed.expected_within for feed in feeds if feed.expected_within}

    @cache
    def maximum_age(key: dg.AssetKey) -> timedelta | None:
        """Return the declared freshness, or else the least one of the sources."""
        table = declared.get(table_name(key))
        own = (table.freshness if table else None) or delivered.get(table_name(key))
        ages = filter(None, map(maximum_age, parents.get(key, ())))
        return own or min(ages, default=None)

    links = DeclaredMetadata(
        table_health=asset_key(health.name), upkeep_runs=asset_key(upkeep.name)
    ).to_metadata()

    def shown(spec: dg.AssetSpec) -> dg.AssetSpec:
        described = spec.merge_attributes(metadata=links)
        # A policy of Dagster applies to a table, not to its partitions.
        if spec.freshness_policy or spec.key in partitioned or spec.key not in parents:
            return described
        window = maximum_age(spec.key)
        if window is None:
            return described
        policy = dg.FreshnessPolicy.time_window(fail_window=window)
        return described.replace_attributes(freshness_policy=policy)

    return [
        asset.map_asset_specs(shown) if isinstance(asset, dg.AssetsDefinition) else shown(asset)
        for asset in assets
    ]
