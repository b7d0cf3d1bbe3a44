"""What came right of the runs that failed and the tables that were held back."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from lakehouse.monitoring.detectors.sources import Lookout
from lakehouse.monitoring.incidents import Broke, Incident, Mended
from lakehouse.orchestration.asset_keys import FEED_TAG, asset_key

_MOST = 1000


def look_for_mends(lookout: Lookout, open_now: Iterable[Incident], news: Iterable[Broke]) -> tuple[Mended, ...]:
    """Return what was published or ran well since things broke.

    :param news: what was seen broken in this look.
    """
    since: dict[str, tuple[Broke, datetime]] = {}
    for broke, at in [*((one.broke, one.opened_at) for one in open_now), *((one, one.at) for one in news)]:
        if broke.kind in ("held", "failed"):
            since.setdefault(broke.key, (broke, at))
    return tuple(mended for broke, at in since.values() for mended in _mends(lookout, broke, at))


def _mends(lookout: Lookout, broke: Broke, since: datetime) -> Iterator[Mended]:
    if broke.key == f"{broke.kind} {broke.table}":
        yield from _published(lookout, broke, since)
    else:
        yield from _ran_well(lookout, broke, since)


def _published(lookout: Lookout, broke: Broke, since: datetime) -> Iterator[Mended]:
    filters = dg.AssetRecordsFilter(asset_key(broke.table), after_timestamp=since.timestamp())
    for record in lookout.instance.fetch_materializations(filters, limit=_MOST, ascending=True).records:
        at = datetime.fromtimestamp(record.timestamp, UTC)
        extent = _extent(lookout, broke, record)
        if extent is not None:
            said, run_id = _how(broke.table, record)
            yield Mended(broke.key, at, said, extent, lookout.links(run_id=run_id, table=broke.table))


def _how(table: str, record: Any) -> tuple[str, str]:
    """Say what published a table, or who and why, and which run that is about."""
    said = record.asset_materialization.metadata
    if "refused_run" in said:
        by, why, run_id = (str(said[name].value) for name in ("overridden_by", "overridden_for", "refused_run"))
        return f"{table} was published against its rules by {by}, as of run {run_id[:8]}: {why}", run_id
    if record.run_id:
        return f"{table} was published by run {record.run_id[:8]}.", record.run_id
    return f"{table} was published outside of runs.", ""


def _extent(lookout: Lookout, broke: Broke, record: Any) -> frozenset[str] | None:
    """Return the partitions that a materialization published, none for a whole table; None where it mends nothing."""
    overruled = record.asset_materialization.metadata.get("refused_run")
    if overruled is not None:
        run = lookout.instance.get_run_by_id(str(overruled.value))
        return lookout.keys_of(broke.table, run) if run else frozenset()
    if record.partition_key is not None:
        return frozenset({record.partition_key})
    return None if broke.extent else frozenset()


def _ran_well(lookout: Lookout, broke: Broke, since: datetime) -> Iterator[Mended]:
    _, kind, name = broke.key.split(" ", 2)
    succeeded = [dg.DagsterRunStatus.SUCCESS]
    filters = (
        dg.RunsFilter(statuses=succeeded, tags={FEED_TAG: name}, updated_after=since)
        if kind == "feed"
        else dg.RunsFilter(statuses=succeeded, job_name=name, updated_after=since)
    )
    for record in lookout.instance.get_run_records(filters, limit=1):
        at = datetime.fromtimestamp(record.end_time, UTC) if record.end_time else lookout.now
        run_id = record.dagster_run.run_id
        yield Mended(broke.key, at, f"Run {run_id[:8]} went through.", links=lookout.links(run_id=run_id))
