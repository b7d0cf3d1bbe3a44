"""What came right of the runs that failed and the tables that were held back."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from lakehouse.monitoring.detectors.sources import MonitorContext
from lakehouse.monitoring.incidents import Firing, Incident, Resolved
from lakehouse.orchestration.asset_keys import FEED_TAG, asset_key
from lakehouse.orchestration.metadata_keys import OverrideMetadata

_MOST = 1000


def look_for_mends(
    context: MonitorContext, open_now: Iterable[Incident], news: Iterable[Firing]
) -> tuple[Resolved, ...]:
    """Return what was published or ran well since things broke.

    :param news: what was seen broken in this look.
    """
    since: dict[str, tuple[Firing, datetime]] = {}
    for firing, at in [
        *((one.firing, one.opened_at) for one in open_now),
        *((one, one.at) for one in news),
    ]:
        if firing.kind in ("held", "failed"):
            since.setdefault(firing.key, (firing, at))
    return tuple(
        resolved for firing, at in since.values() for resolved in _mends(context, firing, at)
    )


def _mends(context: MonitorContext, firing: Firing, since: datetime) -> Iterator[Resolved]:
    if firing.key == f"{firing.kind} {firing.table}":
        yield from _published(context, firing, since)
    else:
        yield from _ran_well(context, firing, since)


def _published(context: MonitorContext, firing: Firing, since: datetime) -> Iterator[Resolved]:
    filters = dg.AssetRecordsFilter(asset_key(firing.table), after_timestamp=since.timestamp())
    for record in context.instance.fetch_materializations(
        filters, limit=_MOST, ascending=True
    ).records:
        at = datetime.fromtimestamp(record.timestamp, UTC)
        extent = _extent(context, firing, record)
        if extent is not None:
            said, run_id = _how(firing.table, record)
            yield Resolved(
                firing.key, at, said, extent, context.links(run_id=run_id, table=firing.table)
            )


def _how(table: str, record: Any) -> tuple[str, str]:
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


def _extent(context: MonitorContext, firing: Firing, record: Any) -> frozenset[str] | None:
    """Return the partitions that a materialization published, none for a whole table; None
    where it mends nothing.
    """
    refused_run = _override(record).run_id
    if refused_run is not None:
        run = context.instance.get_run_by_id(refused_run)
        return context.keys_of(firing.table, run) if run else frozenset()
    if record.partition_key is not None:
        return frozenset({record.partition_key})
    return None if firing.extent else frozenset()


def _ran_well(context: MonitorContext, firing: Firing, since: datetime) -> Iterator[Resolved]:
    _, kind, name = firing.key.split(" ", 2)
    succeeded = [dg.DagsterRunStatus.SUCCESS]
    filters = (
        dg.RunsFilter(statuses=succeeded, tags={FEED_TAG: name}, updated_after=since)
        if kind == "feed"
        else dg.RunsFilter(statuses=succeeded, job_name=name, updated_after=since)
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
