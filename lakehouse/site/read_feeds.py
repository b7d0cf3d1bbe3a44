"""Feeds that need an operator: rejected files, and files that wait for a stopped sensor."""

from collections.abc import Iterable, Mapping

import dagster as dg

from lakehouse.ingestion.collect import list_waiting_now
from lakehouse.maintenance.upkeep_plan import counted
from lakehouse.monitoring.alert_state import read_state
from lakehouse.monitoring.detectors.rejected_inbox_files import open_rejections
from lakehouse.orchestration.asset_keys import FEEDS_SENSOR
from lakehouse.orchestration.dagster_internals import automation_states
from lakehouse.settings import Settings
from lakehouse.storage.stores import open_store
from lakehouse.tables.feed import Feed

FeedWarnings = Mapping[str, tuple[str, ...]]


def feed_warnings(
    settings: Settings, feeds: Iterable[Feed], instance: dg.DagsterInstance | None
) -> FeedWarnings:
    """Return the warnings of each feed by its name; `instance` is None before the first run."""
    store, state = open_store(settings), read_state(settings)
    automations = automation_states(instance) if instance else ()
    stopped = {one.instigator_name for one in automations if not one.is_running}
    warnings = {}
    for feed in feeds:
        found = []
        if rejected := len(open_rejections(store, feed, state)):
            found.append(counted(rejected, "rejected file"))
        for name in sorted(
            {FEEDS_SENSOR, f"{feed.name}_files", f"{feed.name}_batch"} & stopped
        ):
            if waiting := len(list_waiting_now(feed, store).files):
                found.append(f"{counted(waiting, 'file')} waiting, {name} is stopped")
        warnings[feed.name] = tuple(found)
    return warnings
