"""What resolves runs that failed and tables that were blocked: a later publish, or a later
run.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from lakehouse.monitoring.detectors.monitor_context import MonitorContext
from lakehouse.monitoring.incidents import Firing, Incident, Resolved
from lakehouse.orchestration.asset_keys import FEED_TAG, asset_key
from lakehouse.orchestration.metadata_keys import OverrideMetadata

_MOST = 1000


def detect_recoveries(
    context: MonitorContext, open_now: Iterable[Incident], news: Iterable[Firing]
) -> tuple[Resolved, ...]:
    """Return what was published or ran well since incidents began.

    :param news: what was seen firing in this round.
    """
    since: dict[str, tuple[Firing, datetime]] = {}
    began = [(incident.firing, incident.opened_at) for incident in open_now]
    began += [(firing, firing.at) for firing in news]
    for firing, at in began:
        if firing.kind in ("blocked", "failed"):
            since.setdefault(firing.key, (firing, at))
    resolved: list[Resolved] = []
    for firing, at in since.values():
        is_of_table = firing.key == f"{firing.kind} {firing.table}"
        resolve = _publishes_since if is_of_table else _successes_since
        resolved += resolve(context, firing, at)
    return tuple(resolved)


def _publishes_since(
    context: MonitorContext, firing: Firing, since: datetime
) -> Iterator[Resolved]:
    filters = dg.AssetRecordsFilter(asset_key(firing.table), after_timestamp=since.timestamp())
    for record in context.instance.fetch_materializations(
        filters, limit=_MOST, ascending=True
    ).records:
        at = datetime.fromtimestamp(record.timestamp, UTC)
        partitions = _published_partitions(context, firing, record)
        if partitions is not None:
            how, run_id = _describe_publish(firing.table, record)
            links = context.links(run_id=run_id, table=firing.table)
            yield Resolved(firing.key, at, how, partitions, links)


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
    context: MonitorContext, firing: Firing, record: Any
) -> frozenset[str] | None:
    """Return the partitions that a materialization published, none for a whole table; None
    where it resolves nothing.
    """
    refused_run = _override(record).run_id
    if refused_run is not None:
        run = context.instance.get_run_by_id(refused_run)
        return context.keys_of(firing.table, run) if run else frozenset()
    if record.partition_key is not None:
        return frozenset({record.partition_key})
    return None if firing.affected_partitions else frozenset()


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
