"""Names of tables as Dagster's asset keys, and back: `silver.fruits` is `silver/fruits`."""

import dagster as dg

from lakehouse.tables.declaration import TableDeclaration, name_of

ALL_ASSETS = "__ASSET_JOB"
"""Dagster's implicit job; a job from a selection supports only one partitions definition."""
FEEDS_SENSOR = "all_feeds"
"""The sensor that feeds share; a feed's own sensor has the suffix `_files`."""
FEED_TAG = "lakehouse/feed"
"""Run tag with the feed name; one run per feed at a time."""
PATH_TAG = "lakehouse/path"
"""Run tag of an ingest with `--path`: the given path."""


def asset_key(table: str | TableDeclaration) -> dg.AssetKey:
    """Return the asset key of a table, or of `namespace.table`."""
    return dg.AssetKey(name_of(table).split("."))


def table_name(key: dg.AssetKey) -> str:
    """Return the `namespace.table` of an asset key."""
    return ".".join(key.path)
