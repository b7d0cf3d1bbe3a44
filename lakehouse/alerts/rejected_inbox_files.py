"""Rejected files, until they are removed or a file with the same name is landed."""

from datetime import datetime
from functools import lru_cache

from lakehouse.alerts.alert_state import AlertState
from lakehouse.alerts.incidents import Firing, Observed
from lakehouse.alerts.monitor_context import MonitorContext
from lakehouse.settings import Settings
from lakehouse.storage.object_store import ObjectStore
from lakehouse.storage.rejected_files import (
    Rejection,
    read_rejections,
    reason_key,
    rejected_keys,
)
from lakehouse.storage.stores import open_store
from lakehouse.tables.feed import Feed
from lakehouse.tables.quoting import shown

_CACHED_REASONS = 10_000


def detect_rejected_files(context: MonitorContext) -> Observed:
    """Return the files that were rejected, except by a user."""
    store, facts = open_store(context.settings), []
    occupied = store.occupied("rejected/")
    for feed in context.feeds:
        keys = rejected_keys(store, feed.rejected) if feed.name in occupied else {}
        for key, written_at in keys.items():
            rejection = _read_reason(context.settings, key, written_at)
            if not rejection.is_by_a_person:
                facts.append(_firing(context, feed, rejection, store))
    return Observed(tuple(facts), frozenset({"rejected"}))


def rejected_file_key(feed: Feed, source_file: str) -> str:
    """Return the key of the incident of a rejected file."""
    return f"rejected {feed.name} {source_file}"


def open_rejections(store: ObjectStore, feed: Feed, state: AlertState) -> set[str]:
    """Return the keys of rejected files with an open incident, or that are new."""
    keys = set()
    for rejection in read_rejections(store, rejected_keys(store, feed.rejected)):
        closed_at = state.closed.get(rejected_file_key(feed, rejection.source_file))
        is_open = closed_at is None or rejection.rejected_at > closed_at
        if is_open and not rejection.is_by_a_person:
            keys.add(rejection.key)
    return keys


@lru_cache(_CACHED_REASONS)
def _read_reason(settings: Settings, key: str, _written_at: datetime) -> Rejection:
    """Read a reason, which can be in a bucket; each round needs it again."""
    (rejection,) = read_rejections(open_store(settings), [key])
    return rejection


def _firing(
    context: MonitorContext, feed: Feed, rejection: Rejection, store: ObjectStore
) -> Firing:
    reason = store.uri(reason_key(rejection.key))
    return context.firing(
        rejected_file_key(feed, rejection.source_file),
        "rejected",
        rejection.rejected_at,
        f"feed {feed.name}: file {shown(rejection.source_file)} was rejected",
        lines=[
            f"{rejection.why} None of its rows were landed; other files were.",
            rejection.next_step,
            f"Put the corrected file into {feed.inbox}, under any name.",
        ],
        links=[f"File: {shown(rejection.key)}", f"Reason: {shown(reason)}"],
        commands=[f"lakehouse ingest {feed.name}"],
        table=feed.table,
    )
