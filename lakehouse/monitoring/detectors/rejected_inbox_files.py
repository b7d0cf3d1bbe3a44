"""Files that were rejected: until they are taken away, or one of the same name is landed."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from lakehouse.monitoring.detectors.sources import Lookout, WatchedFeed
from lakehouse.monitoring.incidents import Broke, Incident, Mended, Observed, moment_text
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.storage.rejected_files import Rejection, read_rejections, reason_key, rejected_keys
from lakehouse.storage.stores import open_store
from lakehouse.tables.escaping import shown

CURSOR = "rejected"
_MOST = 200


def look_at_rejected(lookout: Lookout, cursors: Mapping[str, Any], open_now: Iterable[Incident]) -> Observed:
    """Return the files that were rejected since the last look, and what became of those before."""
    store = open_store(lookout.settings)
    opened = {one.broke.key: one for one in open_now if one.broke.kind == "rejected"}
    facts: list[Broke | Mended] = []
    there: list[str] = []
    for feed in lookout.feeds:
        keys = rejected_keys(store, feed.rejected)
        there += keys
        found = read_rejections(store, keys, frozenset(cursors.get(CURSOR, ())))
        new = [one for one in found if not one.is_by_a_person]
        broken = [_broke(lookout, feed, one, store.uri(reason_key(one.key))) for one in new]
        old = [one for one in opened.values() if one.broke.key.startswith(f"rejected {feed.rejected}")]
        facts += [*broken, *_taken_away(lookout, keys, old)]
        facts += _landed(lookout, feed, [*(one.broke for one in old), *broken])
    return Observed(tuple(facts), cursors={CURSOR: there})


def _broke(lookout: Lookout, feed: WatchedFeed, found: Rejection, reason: str) -> Broke:
    return Broke(
        f"rejected {found.key}",
        "rejected",
        found.rejected_at,
        "error",
        _title(feed, found.source_file),
        (
            f"{found.why} No row of it was landed; the other files went on.",
            found.next_step,
            f"Put the corrected file into {feed.inbox}, under any name.",
            *lookout.whose(feed.table),
        ),
        (f"File: {shown(found.key)}", f"Reason: {shown(reason)}", *lookout.links(table=feed.table)),
        (f"lakehouse ingest {feed.name}",),
        feed.table,
        lookout.owner(feed.table),
        brief=found.why,
    )


def _title(feed: WatchedFeed, source_file: str) -> str:
    return f"feed {feed.name}: file {shown(source_file)} was rejected"


def _taken_away(lookout: Lookout, keys: list[str], old: Iterable[Incident]) -> Iterator[Mended]:
    for one in old:
        if one.broke.key.removeprefix("rejected ") not in keys:
            yield Mended(one.broke.key, lookout.now, "The file was taken away from the rejected ones.")


def _landed(lookout: Lookout, feed: WatchedFeed, broken: list[Broke]) -> Iterator[Mended]:
    """Yield those of which a file of the same name was landed later; Dagster's materializations list the names."""
    if not broken:
        return
    names: dict[str, list[Broke]] = {}
    for broke in broken:
        names.setdefault(broke.title, []).append(broke)
    since = min(broke.at for broke in broken).timestamp()
    filters = dg.AssetRecordsFilter(asset_key(feed.table), after_timestamp=since)
    for record in lookout.instance.fetch_materializations(filters, limit=_MOST).records:
        at = datetime.fromtimestamp(record.timestamp, UTC)
        for file in _files(record):
            for broke in names.get(_title(feed, file), ()):
                yield Mended(broke.key, at, f"A file of the same name was landed at {moment_text(at)}.")


def _files(record: Any) -> list[str]:
    found = record.asset_materialization.metadata.get("landed")
    return [str(row.data["file"]) for row in found.records] if isinstance(found, dg.TableMetadataValue) else []
