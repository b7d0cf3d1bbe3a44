"""Feeds whose files wait because a user stopped their sensor or schedule."""

from collections.abc import Collection

import dagster as dg

from lakehouse.ingestion.collect import list_waiting_now
from lakehouse.ingestion.sensors.shared_sensor import MOST_BY_THEMSELVES
from lakehouse.orchestration.asset_keys import FEEDS_SENSOR
from lakehouse.orchestration.dagster_internals import automation_states
from lakehouse.settings import Settings
from lakehouse.storage.stores import open_store
from lakehouse.tables.feed import Feed


def stopped_feeds(
    instance: dg.DagsterInstance, settings: Settings, feeds: Collection[Feed]
) -> dict[str, str]:
    """Return, by feed, the stopped sensor or schedule and how many files wait for it."""
    states = automation_states(instance)
    stopped = {state.instigator_name for state in states if state.status.value == "STOPPED"}
    store, problems = open_store(settings), {}
    for feed in feeds:
        name = f"{feed.name}_files" if len(feeds) <= MOST_BY_THEMSELVES else FEEDS_SENSOR
        kind = "sensor"
        if feed.ingest_by == "schedule":
            name, kind = f"{feed.name}_batch", "schedule"
        if name in stopped and (files := list_waiting_now(feed, store).files):
            problems[feed.name] = f"{kind} {name} is stopped, files waiting: {len(files)}"
    return problems
