"""What resolves runs that failed and tables that were blocked: a later publish, or a later
run.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg

from lakehouse.monitoring.detectors.monitor_context import MonitorContext
from lakehouse.monitoring.incidents import Firing, Incident, Observed, Resolved
from lakehouse.orchestration.asset_keys import FEED_TAG, asset_key
from lakehouse.orchestration.metadata_keys import OverrideMetadata

CURSOR = "publishes"
_AT_ONCE = 1000
_SEEN_WITHIN = timedelta(minutes=10)
"""So much later than its own moment an event may be seen: the clocks of hosts differ, and what
writes it may take its time.
"""


@dataclass(frozen=True)
class _Open:
    """What is not resolved, and since when it may have been."""

    firing: Firing
    affected_partitions: frozenset[str]
    since: datetime
    is_new: bool


def detect_recoveries(
    context: MonitorContext, open_now: Iterable[Incident], news: Iterable[Firing]
) -> Observed:
    """Return what was published or ran well since incidents began.

    :param news: what was seen firing in this round.
    """
    resolved: list[Resolved] = []
    for known in _not_resolved(open_now, news).values():
        is_of_table = known.firing.key == f"{known.firing.kind} {known.firing.table}"
        if is_of_table:
            resolved += _publishes_since(context, known)
        else:
            resolved += _successes_since(context, known.firing, known.since)
    return Observed(tuple(resolved), cursors={CURSOR: context.now.isoformat()})


def _not_resolved(open_now: Iterable[Incident], news: Iterable[Firing]) -> Mapping[str, _Open]:
    """Return by key what fails; what came before an incident was seen last resolves nothing."""
    failing: dict[str, _Open] = {}
    for incident in open_now:
        firing = incident.firing
        if firing.kind in ("blocked", "failed"):
            failing[firing.key] = _Open(
                firing, incident.affected_partitions, incident.last_at, is_new=False
            )
    for firing in news:
        if firing.kind in ("blocked", "failed"):
            new = _Open(firing, firing.affected_partitions, firing.at, is_new=True)
            known = failing.get(firing.key)
            failing[firing.key] = _joined(known, new) if known else new
    return failing


def _joined(known: _Open, new: _Open) -> _Open:
    partitions: frozenset[str] = frozenset()
    if known.affected_partitions and new.affected_partitions:
        partitions = known.affected_partitions | new.affected_partitions
    since = min(known.since, new.since)
    return replace(known, affected_partitions=partitions, since=since, is_new=True)


def _publishes_since(context: MonitorContext, known: _Open) -> Iterator[Resolved]:
    firing = known.firing
    for record in _materializations(context, known):
        at = datetime.fromtimestamp(record.timestamp, UTC)
        partitions = _published_partitions(context, known, record)
        if partitions is not None:
            how, run_id = _describe_publish(firing.table, record)
            links = context.links(run_id=run_id, table=firing.table)
            yield Resolved(firing.key, at, how, partitions, links)


def _materializations(context: MonitorContext, known: _Open) -> Iterator[Any]:
    """Yield what was published of a table, or of the partitions of it that fail.

    Those are asked for by name, since thousands of others may be published meanwhile. What a
    person published against the rules names no partition, and Dagster cannot be asked for such
    alone; of all that was published, only what came since the last round is read.
    """
    key, partitions = asset_key(known.firing.table), sorted(known.affected_partitions)
    for begin in range(0, len(partitions), _AT_ONCE):
        some = partitions[begin : begin + _AT_ONCE]
        filters = dg.AssetRecordsFilter(key, some, known.since.timestamp())
        yield from _all_of(context, filters)
    since, seen_until = known.since, context.state.cursors.get(CURSOR)
    if seen_until and not known.is_new:
        since = max(since, datetime.fromisoformat(seen_until) - _SEEN_WITHIN)
    filters = dg.AssetRecordsFilter(key, after_timestamp=since.timestamp())
    for record in _all_of(context, filters):
        if not partitions or record.partition_key is None:
            yield record


def _all_of(context: MonitorContext, filters: dg.AssetRecordsFilter) -> Iterator[Any]:
    cursor, has_more = None, True
    while has_more:
        result = context.instance.fetch_materializations(
            filters, limit=_AT_ONCE, cursor=cursor, ascending=True
        )
        yield from result.records
        cursor, has_more = result.cursor, result.has_more


def _describe_publish(table: str, record: Any) -> tuple[str, str]:
    """Say what published a table, or who and why, and which run that is about."""
    override = _override(record)
    if override.run_id is not None:
        return (
            f"{table} was published against its rules by {override.by}, as of run"
            f" {override.run_id[:8]}: {override.why}",
            override.run_id,
        )
    if record.run_id:
        return f"{table} was published by run {record.run_id[:8]}.", record.run_id
    return f"{table} was published outside of runs.", ""


def _override(record: Any) -> OverrideMetadata:
    return OverrideMetadata.from_metadata(record.asset_materialization.metadata)


def _published_partitions(
    context: MonitorContext, known: _Open, record: Any
) -> frozenset[str] | None:
    """Return the partitions that a materialization published, none for a whole table; None
    where it resolves nothing.
    """
    refused_run = _override(record).run_id
    if refused_run is not None:
        run = context.instance.get_run_by_id(refused_run)
        return context.keys_of(known.firing.table, run) if run else frozenset()
    if record.partition_key is not None:
        return frozenset({record.partition_key})
    return None if known.affected_partitions else frozenset()


def _successes_since(
    context: MonitorContext, firing: Firing, since: datetime
) -> Iterator[Resolved]:
    _, kind, name = firing.key.split(" ", 2)
    filters = dg.RunsFilter(
        statuses=[dg.DagsterRunStatus.SUCCESS],
        tags={FEED_TAG: name} if kind == "feed" else {},
        job_name=None if kind == "feed" else name,
        updated_after=since,
    )
    for record in context.instance.get_run_records(filters, limit=1):
        at = datetime.fromtimestamp(record.end_time, UTC) if record.end_time else context.now
        run_id = record.dagster_run.run_id
        yield Resolved(
            firing.key,
            at,
            f"Run {run_id[:8]} went through.",
            links=context.links(run_id=run_id),
        )
