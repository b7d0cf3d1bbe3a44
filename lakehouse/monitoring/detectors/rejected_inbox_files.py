"""Files that were rejected: until they are removed, or one of the same name is landed."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import dagster as dg

from lakehouse.monitoring.alert_state import AlertState
from lakehouse.monitoring.detectors.monitor_context import MonitorContext
from lakehouse.monitoring.incidents import Firing, Observed, Resolved, moment_text
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.metadata_keys import LandedFile, LandingMetadata
from lakehouse.storage.object_store import ObjectStore
from lakehouse.storage.rejected_files import (
    CLOCKS_DIFFER_BY,
    Rejection,
    read_rejections,
    reason_key,
    rejected_keys,
)
from lakehouse.storage.stores import open_store
from lakehouse.tables.escaping import shown
from lakehouse.tables.feed import Feed

CURSOR = "rejected"
_MOST = 200


def detect_rejected_files(context: MonitorContext) -> Observed:
    """Return the files that were rejected since the last round, and what became of those
    before.
    """
    store = open_store(context.settings)
    open_now = [incident.firing for incident in context.state.open.values()]
    seen = _seen(context.state)
    facts: list[Firing | Resolved] = []
    there: dict[str, str] = {}
    occupied = store.occupied("rejected/")
    for feed in context.feeds:
        keys = rejected_keys(store, feed.rejected) if feed.name in occupied else {}
        there |= {key: reason_at.isoformat() for key, reason_at in keys.items()}
        prefix = rejected_prefix(feed)
        known = [firing for firing in open_now if firing.key.startswith(prefix)]
        firings = []
        for rejection in _news(store, keys, seen):
            if not rejection.is_by_a_person:
                reason = store.uri(reason_key(rejection.key))
                firings.append(_firing(context, feed, rejection, reason))
        facts += [*firings, *_removed(context, keys, known)]
        facts += _landed(context, feed, [*known, *firings])
    return Observed(tuple(facts), cursors={CURSOR: there})


def rejected_prefix(feed: Feed) -> str:
    """Return what the keys of incidents of a feed's rejected files begin with."""
    return f"rejected {feed.rejected}"


def open_rejections(store: ObjectStore, feed: Feed, state: AlertState) -> set[str]:
    """Return the keys of a feed's rejected files that have an open incident, or that monitoring
    has not seen yet.
    """
    keys = rejected_keys(store, feed.rejected)
    news = _news(store, keys, _seen(state))
    unseen = {rejection.key for rejection in news if not rejection.is_by_a_person}
    return unseen | {key for key in keys if f"rejected {key}" in state.open}


def _seen(state: AlertState) -> Mapping[str, datetime]:
    """Return the keys that were seen, and when the reason of each was written."""
    cursor = state.cursors.get(CURSOR, {})
    return {key: datetime.fromisoformat(at) for key, at in cursor.items()}


def _news(
    store: ObjectStore, keys: Mapping[str, datetime], seen: Mapping[str, datetime]
) -> Iterator[Rejection]:
    """Yield what was rejected since.

    The same content under the same name has the same key, and may come again after a good file:
    then its reason is newer. That a reason was only copied is no rejection.
    """
    written = [key for key, at in keys.items() if key not in seen or at > seen[key]]
    for rejection in read_rejections(store, written):
        seen_at = seen.get(rejection.key)
        if seen_at is None or rejection.rejected_at > seen_at - CLOCKS_DIFFER_BY:
            yield rejection


def _firing(context: MonitorContext, feed: Feed, rejection: Rejection, reason: str) -> Firing:
    return context.firing(
        f"rejected {rejection.key}",
        "rejected",
        rejection.rejected_at,
        _title(feed, rejection.source_file),
        lines=[
            f"{rejection.why} No row of it was landed; the other files went on.",
            rejection.next_step,
            f"Put the corrected file into {feed.inbox}, under any name.",
        ],
        links=[f"File: {shown(rejection.key)}", f"Reason: {shown(reason)}"],
        commands=[f"lakehouse ingest {feed.name}"],
        table=feed.table,
        brief=rejection.why,
    )


def _title(feed: Feed, source_file: str) -> str:
    return f"feed {feed.name}: file {shown(source_file)} was rejected"


def _removed(
    context: MonitorContext, keys: Collection[str], known: Iterable[Firing]
) -> Iterator[Resolved]:
    for firing in known:
        if firing.key.removeprefix("rejected ") not in keys:
            how = "The file was removed from the rejected ones."
            yield Resolved(firing.key, context.now, how)


def _landed(context: MonitorContext, feed: Feed, firings: list[Firing]) -> Iterator[Resolved]:
    """Yield those of which a file of the same name was landed later; Dagster's materializations
    list the names.
    """
    if not firings:
        return
    names: dict[str, list[Firing]] = {}
    for firing in firings:
        names.setdefault(firing.title, []).append(firing)
    since = min(firing.at for firing in firings).timestamp()
    filters = dg.AssetRecordsFilter(asset_key(feed.table), after_timestamp=since)
    for record in context.instance.fetch_materializations(filters, limit=_MOST).records:
        at = datetime.fromtimestamp(record.timestamp, UTC)
        for file in _landed_files(record):
            for firing in names.get(_title(feed, file.file), ()):
                yield Resolved(
                    firing.key, at, f"A file of the same name was landed at {moment_text(at)}."
                )


def _landed_files(record: dg.EventLogRecord) -> Sequence[LandedFile]:
    materialization = record.asset_materialization
    if materialization is None:
        return ()
    return LandingMetadata.from_metadata(materialization.metadata).landed
