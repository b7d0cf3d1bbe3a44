"""Files that were rejected: until they are taken away, or one of the same name is landed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from lakehouse.monitoring.detectors.sources import MonitorContext, WatchedFeed
from lakehouse.monitoring.incidents import Firing, Incident, Observed, Resolved, moment_text
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.metadata_keys import LandedFile, LandingMetadata
from lakehouse.storage.rejected_files import (
    Rejection,
    read_rejections,
    reason_key,
    rejected_keys,
)
from lakehouse.storage.stores import open_store
from lakehouse.tables.escaping import shown

CURSOR = "rejected"
_MOST = 200


def detect_rejected_files(
    context: MonitorContext, cursors: Mapping[str, Any], open_now: Iterable[Incident]
) -> Observed:
    """Return the files that were rejected since the last look, and what became of those
    before.
    """
    store = open_store(context.settings)
    opened = {one.firing.key: one for one in open_now if one.firing.kind == "rejected"}
    facts: list[Firing | Resolved] = []
    there: list[str] = []
    for feed in context.feeds:
        keys = rejected_keys(store, feed.rejected)
        there += keys
        found = read_rejections(store, keys, frozenset(cursors.get(CURSOR, ())))
        new = [one for one in found if not one.is_by_a_person]
        broken = [_firing(context, feed, one, store.uri(reason_key(one.key))) for one in new]
        old = [
            one
            for one in opened.values()
            if one.firing.key.startswith(f"rejected {feed.rejected}")
        ]
        facts += [*broken, *_taken_away(context, keys, old)]
        facts += _landed(context, feed, [*(one.firing for one in old), *broken])
    return Observed(tuple(facts), cursors={CURSOR: there})


def _firing(
    context: MonitorContext, feed: WatchedFeed, found: Rejection, reason: str
) -> Firing:
    return Firing(
        f"rejected {found.key}",
        "rejected",
        found.rejected_at,
        "error",
        _title(feed, found.source_file),
        (
            f"{found.why} No row of it was landed; the other files went on.",
            found.next_step,
            f"Put the corrected file into {feed.inbox}, under any name.",
            *context.whose(feed.table),
        ),
        (
            f"File: {shown(found.key)}",
            f"Reason: {shown(reason)}",
            *context.links(table=feed.table),
        ),
        (f"lakehouse ingest {feed.name}",),
        feed.table,
        context.owner(feed.table),
        brief=found.why,
    )


def _title(feed: WatchedFeed, source_file: str) -> str:
    return f"feed {feed.name}: file {shown(source_file)} was rejected"


def _taken_away(
    context: MonitorContext, keys: list[str], old: Iterable[Incident]
) -> Iterator[Resolved]:
    for one in old:
        if one.firing.key.removeprefix("rejected ") not in keys:
            yield Resolved(
                one.firing.key, context.now, "The file was taken away from the rejected ones."
            )


def _landed(
    context: MonitorContext, feed: WatchedFeed, broken: list[Firing]
) -> Iterator[Resolved]:
    """Yield those of which a file of the same name was landed later; Dagster's materializations
    list the names.
    """
    if not broken:
        return
    names: dict[str, list[Firing]] = {}
    for firing in broken:
        names.setdefault(firing.title, []).append(firing)
    since = min(firing.at for firing in broken).timestamp()
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
    return (
        LandingMetadata.from_metadata(materialization.metadata).landed
        if materialization
        else ()
    )
