"""Feeds that need an operator: rejected files, and files that wait for a stopped sensor."""

from collections.abc import Collection, Mapping

import dagster as dg

from lakehouse.alerts.alert_state import read_state
from lakehouse.alerts.rejected_inbox_files import open_rejections
from lakehouse.ingestion.sensors.stopped_feeds import stopped_feeds
from lakehouse.settings import Settings
from lakehouse.storage.stores import open_store
from lakehouse.tables.feed import Feed
from lakehouse.upkeep.upkeep_plan import count_text

FeedWarnings = Mapping[str, tuple[str, ...]]


def feed_warnings(
    settings: Settings, feeds: Collection[Feed], instance: dg.DagsterInstance | None
) -> FeedWarnings:
    """Return the warnings of each feed by its name; `instance` is None before the first run."""
    store, state = open_store(settings), read_state(settings)
    stopped = stopped_feeds(instance, settings, feeds) if instance else {}
    warnings = {}
    for feed in feeds:
        found = []
        if rejected := len(open_rejections(store, feed, state)):
            found.append(count_text(rejected, "rejected file"))
        if feed.name in stopped:
            found.append(stopped[feed.name])
        warnings[feed.name] = tuple(found)
    return warnings
