"""New events of runs: failed checks, steps, runs and maintenance, and what resolves them.

Each event of a run is read once, while the run continues or after it has finished, for runs of
the UI, of commands and of other code locations. A table that a rule blocked is one incident with
the results of its rules; its checks, and the failure of the run, are not further incidents.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg

from lakehouse.alerts.check_facts import check_facts
from lakehouse.alerts.failure_reasons import remove_values
from lakehouse.alerts.incidents import Firing, Incident, Observed, Resolved, moment_text
from lakehouse.alerts.monitor_context import MonitorContext
from lakehouse.alerts.rejected_inbox_files import rejected_file_key
from lakehouse.alerts.run_failures import failure_facts
from lakehouse.iceberg.upkeep.step_result import StepResult
from lakehouse.orchestration.asset_keys import FEED_TAG, asset_key, table_name
from lakehouse.orchestration.dagster_internals import new_events_of_run, observation_in
from lakehouse.orchestration.erasure_runs import JOB as ERASE_PEOPLE
from lakehouse.orchestration.erasure_runs import REQUEST_TAG
from lakehouse.orchestration.metadata_keys import (
    LandingMetadata,
    OverrideMetadata,
    plain_values,
)
from lakehouse.orchestration.runs import UNFINISHED
from lakehouse.orchestration.upkeep_results import JOB as MAINTAIN_TABLES
from lakehouse.orchestration.upkeep_results import step_result_of

CURSOR = "runs"
_FIRST_ROUND = timedelta(days=1)
_OVERLAP = timedelta(minutes=5)
"""The clocks of hosts differ, and transactions take time."""
_PAGE = 1000
_SHOWN_PATHS = 5
_FINISHED = [
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
]
_TYPES = {
    dg.DagsterEventType.ASSET_CHECK_EVALUATION,
    dg.DagsterEventType.ASSET_MATERIALIZATION,
    dg.DagsterEventType.ASSET_OBSERVATION,
    dg.DagsterEventType.STEP_FAILURE,
    dg.DagsterEventType.RUN_FAILURE,
}


def detect_run_events(context: MonitorContext) -> Observed:
    """Return the incidents of new events, and what they resolve."""
    known: Mapping[str, Any] = context.state.cursors.get(CURSOR, {})
    done, read = list(known.get("done", ())), dict(known.get("read", {}))
    since = context.now - _FIRST_ROUND
    if known:
        since = datetime.fromisoformat(known["until"]) - _OVERLAP
    facts: list[Firing | Resolved] = []
    next_read, next_done = {}, []
    for record in _run_records(context, since):
        run = record.dagster_run
        if run.is_finished:
            next_done.append(run.run_id)
        if run.run_id in done:
            continue
        entries, cursor = new_events_of_run(
            context.instance, run.run_id, _TYPES, read.get(run.run_id)
        )
        for entry in entries:
            facts += _facts(context, run, entry)
        if run.status is dg.DagsterRunStatus.SUCCESS:
            facts += _successes(context, record)
        if not run.is_finished:
            next_read[run.run_id] = cursor
    opened = {fact.key: Incident.of(fact) for fact in facts if isinstance(fact, Firing)}
    for incident in (*context.state.open.values(), *opened.values()):
        if incident.firing.kind in ("blocked", "failed") and incident.firing.table:
            is_new = incident.firing.key in opened
            after = incident.last_at if is_new else max(incident.last_at, since)
            facts += _reported_publishes(context, incident, after)
    until = context.now.isoformat()
    cursors = {CURSOR: {"until": until, "read": next_read, "done": next_done}}
    return Observed(tuple(facts), cursors=cursors)


def _run_records(context: MonitorContext, since: datetime) -> list[dg.RunRecord]:
    """Return the unfinished runs, and those that finished since a timestamp."""
    unfinished = context.instance.get_run_records(dg.RunsFilter(statuses=UNFINISHED))
    # After the unfinished ones, so that a run that ends meanwhile is not missed.
    finished = context.instance.get_run_records(
        dg.RunsFilter(statuses=_FINISHED, updated_after=since),
        order_by="update_timestamp",
        ascending=True,
    )
    # A new tag updates a run that finished long ago.
    recent = [run for run in finished if not run.end_time or run.end_time >= since.timestamp()]
    return list({run.dagster_run.run_id: run for run in (*unfinished, *recent)}.values())


def _facts(
    context: MonitorContext, run: dg.DagsterRun, entry: dg.EventLogEntry
) -> Iterator[Firing | Resolved]:
    event = entry.get_dagster_event()
    if event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION:
        yield from check_facts(context, entry)
    elif event.event_type is dg.DagsterEventType.ASSET_OBSERVATION:
        yield from _upkeep_facts(context, run, entry)
    elif event.event_type is dg.DagsterEventType.ASSET_MATERIALIZATION:
        yield from _publish_facts(context, run, entry)
    elif not (run.job_name == ERASE_PEOPLE and REQUEST_TAG in run.tags):
        # The request is the incident, not its run.
        yield from failure_facts(context, run, entry)


def _upkeep_facts(
    context: MonitorContext, run: dg.DagsterRun, entry: dg.EventLogEntry
) -> Iterator[Firing | Resolved]:
    """Yield the incident of a maintenance step, or its resolution.

    A step that a writer delayed is not an incident: it is due again.
    """
    observation = observation_in(entry.get_dagster_event())
    if run.job_name != MAINTAIN_TABLES or observation is None:
        return
    table = table_name(observation.asset_key)
    result = step_result_of(table, plain_values(observation.metadata))
    if result is None or result.had_conflict:
        return
    key, at = f"upkeep {table} {result.step}", datetime.fromtimestamp(entry.timestamp, UTC)
    if result.outcome in ("done", "skipped"):
        how = f"{result.step} of {table} succeeded in run {run.run_id[:8]}."
        yield Resolved(key, at, how, links=context.links(run_id=run.run_id, table=table))
        return
    is_failed, reason = result.outcome == "failed", _reason(context, result)
    yield context.firing(
        key,
        "upkeep",
        at,
        f"{table}: {result.step} {'failed' if is_failed else 'is partial'}",
        lines=[reason, *_remaining_lines(result)],
        commands=[f"lakehouse maintain {table} --dry-run", f"lakehouse maintain {table}"],
        severity="error" if is_failed else "warn",
        table=table,
        run_id=run.run_id,
        brief=reason,
        # The sensor retries it.
        heals=is_failed,
    )


def _reason(context: MonitorContext, result: StepResult) -> str:
    """Describe why a step failed; errors of libraries can quote data."""
    if not result.error:
        return result.reason
    table = context.declared.get(result.table)
    if table is None or table.has_personal_data:
        return f"{result.error}; its text can contain data, see the run."
    return f"{result.error}: {remove_values(result.reason)}"


def _remaining_lines(result: StepResult) -> Iterator[str]:
    for path in result.remaining[:_SHOWN_PATHS]:
        yield f"Remaining: {path}"
    if len(result.remaining) > _SHOWN_PATHS:
        yield f"and {len(result.remaining) - _SHOWN_PATHS:,} more, see the run."


def _publish_facts(
    context: MonitorContext, run: dg.DagsterRun, entry: dg.EventLogEntry
) -> Iterator[Resolved]:
    """Yield the resolution of incidents of a published table, and of its rejected files."""
    materialization = entry.asset_materialization
    if materialization is None:
        return
    key, at = materialization.asset_key, datetime.fromtimestamp(entry.timestamp, UTC)
    table, partition = table_name(key), materialization.partition
    for file in LandingMetadata.from_metadata(materialization.metadata).landed:
        for feed in context.feeds:
            if feed.table == table:
                how = f"A file with the same name was landed at {moment_text(at)}."
                yield Resolved(rejected_file_key(feed, file.file), at, how)
    node = context.graph.get(key) if context.graph.has(key) else None
    if partition is None and node is not None and node.partitions_def is not None:
        # Nothing was computed for any partition.
        return
    partitions = frozenset({partition} if partition else ())
    how = f"{table} was published by run {run.run_id[:8]}."
    links = context.links(run_id=run.run_id, table=table)
    for kind in ("blocked", "failed"):
        yield Resolved(f"{kind} {table}", at, how, partitions, links)


def _successes(context: MonitorContext, record: dg.RunRecord) -> Iterator[Resolved]:
    """Yield the resolution of failed runs of the same job or feed."""
    run = record.dagster_run
    end = record.end_time
    at = datetime.fromtimestamp(end, UTC) if end else context.now
    how, links = f"Run {run.run_id[:8]} succeeded.", context.links(run_id=run.run_id)
    yield Resolved(f"failed job {run.job_name}", at, how, links=links)
    if FEED_TAG in run.tags:
        yield Resolved(f"failed feed {run.tags[FEED_TAG]}", at, how, links=links)


def _reported_publishes(
    context: MonitorContext, incident: Incident, after: datetime
) -> Iterator[Resolved]:
    """Yield the publishes of a failed table outside of runs, such as by `lakehouse publish`."""
    table = incident.firing.table
    for record in _materializations(context, table, after):
        materialization = record.asset_materialization
        if record.run_id or materialization is None:
            continue
        at = datetime.fromtimestamp(record.timestamp, UTC)
        override = OverrideMetadata.from_metadata(materialization.metadata)
        partitions = frozenset({record.partition_key} if record.partition_key else ())
        how = f"{table} was published outside of runs."
        if override.run_id is not None:
            run = context.instance.get_run_by_id(override.run_id)
            partitions = context.partitions_of_run(table, run) if run else frozenset()
            how = (
                f"{table} was published against its rules by {override.by}, as of run"
                f" {override.run_id[:8]}: {override.why}"
            )
        elif incident.affected_partitions and not partitions:
            continue
        links = context.links(run_id=override.run_id or "", table=table)
        yield Resolved(incident.firing.key, at, how, partitions, links)


def _materializations(
    context: MonitorContext, table: str, after: datetime
) -> Iterator[dg.EventLogRecord]:
    filters = dg.AssetRecordsFilter(asset_key(table), after_timestamp=after.timestamp())
    page = context.instance.fetch_materializations(filters, limit=_PAGE)
    yield from page.records
    while page.has_more:
        page = context.instance.fetch_materializations(filters, limit=_PAGE, cursor=page.cursor)
        yield from page.records
