"""Rejected files, until they are removed or a file with the same name is landed."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from lakehouse.alerts.alert_state import AlertState
from lakehouse.alerts.incidents import Firing, Observed, Resolved
from lakehouse.alerts.monitor_context import MonitorContext
from lakehouse.storage.object_store import ObjectStore
from lakehouse.storage.rejected_files import (
    CLOCKS_DIFFER_BY,
    Rejection,
    read_rejections,
    reason_key,
    rejected_keys,
)
from lakehouse.storage.stores import open_store
from lakehouse.tables.feed import Feed
from lakehouse.tables.quoting import shown

CURSOR = "rejected"
"""By key of a rejected file, when its reason was written and the incident."""


def detect_rejected_files(context: MonitorContext) -> Observed:
    """Return the files that were rejected or removed since the last round."""
    store, seen = open_store(context.settings), _seen(context.state)
    facts: list[Firing | Resolved] = []
    cursor: dict[str, tuple[str, str]] = {}
    occupied = store.occupied("rejected/")
    for feed in context.feeds:
        keys = rejected_keys(store, feed.rejected) if feed.name in occupied else {}
        incidents = {key: seen[key][1] for key in keys if key in seen}
        for rejection in _new_rejections(store, keys, seen):
            incidents[rejection.key] = rejected_file_key(feed, rejection.source_file)
            if not rejection.is_by_a_person:
                facts.append(_firing(context, feed, rejection, store))
        for key, incident in incidents.items():
            cursor[key] = (keys[key].isoformat(), incident)
    remaining = {incident for _, incident in cursor.values()}
    prefixes = tuple(rejected_file_key(feed, "") for feed in context.feeds)
    for incident in context.state.open:
        if incident.startswith(prefixes) and incident not in remaining:
            facts.append(Resolved(incident, context.now, "The rejected file was removed."))
    return Observed(tuple(facts), cursors={CURSOR: cursor})


def rejected_file_key(feed: Feed, source_file: str) -> str:
    """Return the key of the incident of a rejected file."""
    return f"rejected {feed.name} {source_file}"


def open_rejections(store: ObjectStore, feed: Feed, state: AlertState) -> set[str]:
    """Return the keys of rejected files with an open incident, or that are new."""
    keys, seen = rejected_keys(store, feed.rejected), _seen(state)
    new = _new_rejections(store, keys, seen)
    unseen = {rejection.key for rejection in new if not rejection.is_by_a_person}
    return unseen | {key for key in keys if key in seen and seen[key][1] in state.open}


def _seen(state: AlertState) -> Mapping[str, tuple[datetime, str]]:
    cursor = state.cursors.get(CURSOR, {})
    return {
        key: (datetime.fromisoformat(at), incident) for key, (at, incident) in cursor.items()
    }


def _new_rejections(
    store: ObjectStore,
    keys: Mapping[str, datetime],
    seen: Mapping[str, tuple[datetime, str]],
) -> Iterator[Rejection]:
    """Yield the rejections since the last round.

    The same content with the same name has the same key: its reason is newer if it was rejected
    again. A reason that was only copied has an old timestamp in it.
    """
    written = [key for key, at in keys.items() if key not in seen or at > seen[key][0]]
    for rejection in read_rejections(store, written):
        known = seen.get(rejection.key)
        if known is None or rejection.rejected_at > known[0] - CLOCKS_DIFFER_BY:
            yield rejection


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
        brief=rejection.why,
    )
