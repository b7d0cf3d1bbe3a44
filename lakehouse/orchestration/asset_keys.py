"""Names of tables as Dagster's asset keys, and back: `silver.fruits` is `silver/fruits`."""

import dagster as dg

from lakehouse.tables.declaration import TableDeclaration, name_of

ALL_ASSETS = "__ASSET_JOB"
"""Dagster's own job, which commands run too; one that is made of a selection takes one
partitions definition only.
"""
FEEDS_SENSOR = "all_feeds"
"""The sensor that many feeds share; the one that a feed has to itself ends in `_files`."""
FEED_TAG = "lakehouse/feed"
"""Tag of the runs that ingest a feed, by its name; one is run at a time."""


def asset_key(table: str | TableDeclaration) -> dg.AssetKey:
    """Return the asset key of a table, or of `namespace.table`."""
    return dg.AssetKey(name_of(table).split("."))


def table_name(key: dg.AssetKey) -> str:
    """Return the `namespace.table` of an asset key."""
    return ".".join(key.path)
