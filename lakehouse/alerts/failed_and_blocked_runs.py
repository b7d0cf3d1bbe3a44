"""New events of runs: failed checks, steps, runs and maintenance, and what resolves them.

Each event of a run is read once, while the run continues or after it has finished, for runs of
the UI, of commands and of other code locations. A table that a rule blocked is one incident with
the results of its rules; its checks, and the failure of the run, are not further incidents. Nor
are failed maintenance steps and interrupted runs, which a user stopped.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg

from lakehouse.alerts.failed_checks import check_facts, describe_failure
from lakehouse.alerts.failure_reasons import reason_of, remove_values
from lakehouse.alerts.incidents import Firing, Observed, Resolved, moment_text
from lakehouse.alerts.monitor_context import MonitorContext, describe_rows
from lakehouse.alerts.rejected_inbox_files import rejected_file_key
from lakehouse.iceberg.upkeep.step_result import StepResult
from lakehouse.orchestration.asset_keys import FEED_TAG, PATH_TAG, asset_key, table_name
from lakehouse.orchestration.blocked_tables import STALE
from lakehouse.orchestration.dagster_internals import (
    events_of_run,
    new_events_of_run,
    observation_in,
)
from lakehouse.orchestration.failure_texts import causes
from lakehouse.orchestration.metadata_keys import (
    BlockedMetadata,
    CheckMetadata,
    LandingMetadata,
    plain_values,
)
from lakehouse.orchestration.partitions.partition_bounds import range_of
from lakehouse.orchestration.runs.erasure_runs import JOB as ERASE_PEOPLE
from lakehouse.orchestration.runs.erasure_runs import REQUEST_TAG
from lakehouse.orchestration.runs.run_in_process import UNFINISHED
from lakehouse.orchestration.runs.run_result import FINISHED
from lakehouse.orchestration.runs.runs_for_stale_tables import RECOMPUTED_FOR_ERASURE
from lakehouse.orchestration.runs.upkeep_results import JOB as MAINTAIN_TABLES
from lakehouse.orchestration.runs.upkeep_results import step_result_of

CURSOR = "runs"
_FIRST_ROUND = timedelta(days=1)
_OVERLAP = timedelta(minutes=5)
"""The clocks of hosts differ, and transactions take time."""
_TYPES = {
    dg.DagsterEventType.ASSET_CHECK_EVALUATION,
    dg.DagsterEventType.ASSET_MATERIALIZATION,
    dg.DagsterEventType.ASSET_OBSERVATION,
    dg.DagsterEventType.STEP_FAILURE,
    dg.DagsterEventType.RUN_FAILURE,
}
_KNOWN = {
    "DagsterAssetCheckFailedError",
    "DagsterExecutionInterruptedError",
    "KeyboardInterrupt",
    "UpkeepFailed",
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
    until = context.now.isoformat()
    cursors = {CURSOR: {"until": until, "read": next_read, "done": next_done}}
    return Observed(tuple(facts), cursors=cursors)


def _run_records(context: MonitorContext, since: datetime) -> list[dg.RunRecord]:
    """Return the unfinished runs, and those that finished since a timestamp."""
    unfinished = context.instance.get_run_records(dg.RunsFilter(statuses=UNFINISHED))
    # After the unfinished ones, so that a run that ends meanwhile is not missed.
    finished = context.instance.get_run_records(
        dg.RunsFilter(statuses=FINISHED, updated_after=since),
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
        if table := context.tables_of_steps.get(entry.step_key or ""):
            how = f"They were evaluated in run {run.run_id[:8]}."
            yield Resolved(f"failed checks of {table}", _at(entry), how)
    elif event.event_type is dg.DagsterEventType.ASSET_OBSERVATION:
        yield from _upkeep_facts(context, run, entry)
    elif event.event_type is dg.DagsterEventType.ASSET_MATERIALIZATION:
        yield from _publish_facts(context, run, entry)
    elif not (run.job_name == ERASE_PEOPLE and REQUEST_TAG in run.tags):
        # The request is the incident, not its run.
        yield from _failure_facts(context, run, entry)


def _upkeep_facts(
    context: MonitorContext, run: dg.DagsterRun, entry: dg.EventLogEntry
) -> Iterator[Firing | Resolved]:
    """Yield the incident of a maintenance step, or its resolution.

    A step that a writer delayed is not an incident: it is due again.
    """
    observation = observation_in(entry.get_dagster_event())
    if run.job_name != MAINTAIN_TABLES or observation is None:
        return
    result = step_result_of(plain_values(observation.metadata))
    if result is None or result.had_conflict:
        return
    table = result.table
    key, at = f"upkeep {table} {result.step}", datetime.fromtimestamp(entry.timestamp, UTC)
    if result.outcome in ("done", "skipped"):
        how = f"{result.step} of {table} succeeded in run {run.run_id[:8]}."
        yield Resolved(key, at, how)
        return
    is_failed = result.outcome == "failed"
    yield context.firing(
        key,
        "upkeep",
        at,
        f"{table}: {result.step} {'failed' if is_failed else 'is partial'}",
        lines=[_reason(context, result), *_remaining_lines(result)],
        commands=[f"lakehouse maintain {table} --dry-run", f"lakehouse maintain {table}"],
        severity="error" if is_failed else "warn",
        table=table,
        run_id=run.run_id,
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
    if result.remaining:
        first, *others = result.remaining
        yield f"Remaining: {first}{f' and {len(others):,} more' if others else ''}"


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
    for kind in ("blocked", "failed"):
        yield Resolved(f"{kind} {table}", at, how, partitions)


def _successes(context: MonitorContext, record: dg.RunRecord) -> Iterator[Resolved]:
    """Yield the resolution of failed runs of the same job or feed."""
    run = record.dagster_run
    end = record.end_time
    at = datetime.fromtimestamp(end, UTC) if end else context.now
    how = f"Run {run.run_id[:8]} succeeded."
    yield Resolved(f"failed job {run.job_name}", at, how)
    if FEED_TAG in run.tags:
        yield Resolved(f"failed feed {run.tags[FEED_TAG]}", at, how)


def _failure_facts(
    context: MonitorContext, run: dg.DagsterRun, entry: dg.EventLogEntry
) -> Iterator[Firing]:
    """Yield the incident of a failed step, or of a run that failed without a failed step."""
    event = entry.get_dagster_event()
    if event.is_step_failure:
        yield from _step_facts(context, run, entry)
    elif not events_of_run(context.instance, run.run_id, dg.DagsterEventType.STEP_FAILURE, 1):
        # Another process that reports the failure of a dead run has no data.
        error = event.job_failure_data.error if event.event_specific_data else None
        if not _is_known(error):
            yield _failed(context, run, "", entry, error)


def _step_facts(
    context: MonitorContext, run: dg.DagsterRun, entry: dg.EventLogEntry
) -> Iterator[Firing]:
    failure = entry.get_dagster_event().step_failure_data
    if _is_known(failure.error):
        return
    table = context.tables_of_steps.get(entry.step_key or "")
    reported = failure.user_failure_data
    blocked = BlockedMetadata.from_metadata(reported.metadata if reported else {})
    if table and blocked.branch is not None:
        yield _blocked(context, run, table, blocked, _at(entry))
    else:
        yield _failed(context, run, table or "", entry, failure.error)


def _is_known(error: Any) -> bool:
    return any(cause.cls_name in _KNOWN for cause in causes(error))


def _blocked(
    context: MonitorContext,
    run: dg.DagsterRun,
    table: str,
    blocked: BlockedMetadata,
    at: datetime,
) -> Firing:
    failed = _failed_checks(context, run, table)
    metadata = [CheckMetadata.from_metadata(evaluation.metadata) for evaluation in failed]
    rows = [row for record in metadata for row in record.sample]
    branch = blocked.branch
    still = f"at snapshot {blocked.snapshot_id}" if blocked.snapshot_id else "empty"
    commands = []
    if branch:
        commands.append(f"lakehouse sql \"SELECT * FROM {table} VERSION AS OF '{branch}'\"")
    commands += [*context.reject_commands(table, rows), f"lakehouse retry {table}"]
    if branch:
        commands.append(f"lakehouse publish {table} --run {run.run_id[:8]} --why …")
    return context.firing(
        f"blocked {table}",
        "blocked",
        at,
        f"{table} is blocked by rule {blocked.failed_rules}",
        lines=(
            *map(describe_failure, failed),
            f"Nothing was published: {table} is still {still}.",
            *describe_rows(rows, context.masked_columns(table)),
        ),
        commands=commands,
        table=table,
        run_id=run.run_id,
        affected_partitions=context.partitions_of_run(table, run),
    )


def _failed_checks(context: MonitorContext, run: dg.DagsterRun, table: str) -> Sequence[Any]:
    """Return the failed checks of a table in a run, errors first."""
    of_type = dg.DagsterEventType.ASSET_CHECK_EVALUATION
    checks = [
        entry.get_dagster_event().asset_check_evaluation_data
        for entry in events_of_run(context.instance, run.run_id, of_type)
    ]
    failed = [
        check for check in checks if not check.passed and table_name(check.asset_key) == table
    ]
    return sorted(failed, key=lambda check: check.severity != dg.AssetCheckSeverity.ERROR)


def _failed(
    context: MonitorContext, run: dg.DagsterRun, table: str, entry: Any, error: Any
) -> Firing:
    feed = run.tags.get(FEED_TAG)
    name = table or _first_table(context, run)
    failed = title = name or f"job {run.job_name}"
    if feed and not table:
        name, failed, title = "", f"feed {feed}", f"the ingest of {feed}"
    bronze = next((known.table for known in context.feeds if known.name == feed), "")
    partitions = context.partitions_of_run(name, run) if name else frozenset()
    reason = reason_of(error, context.declared.get(name or bronze)) or entry.message or ""
    what, commands = "the run failed", [*_retry_commands(run, name, partitions)]
    if table and not _is_written(context, run, table):
        failed, what = f"checks of {table}", "its checks could not be evaluated"
        commands = [f"lakehouse check {table}"]
    return context.firing(
        f"failed {failed}",
        "failed",
        _at(entry),
        f"{title}: {what}",
        lines=[reason],
        commands=[*commands, "lakehouse doctor"],
        table=name or bronze,
        run_id=run.run_id,
        affected_partitions=partitions,
        # The sensor that requested the run retries it.
        heals=STALE in run.tags,
    )


def _is_written(context: MonitorContext, run: dg.DagsterRun, table: str) -> bool:
    """Whether a run computes a table; others only evaluate its checks."""
    planned = _keys_of(context, run, dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED)
    return asset_key(table) in planned


def _keys_of(
    context: MonitorContext, run: dg.DagsterRun, of_type: dg.DagsterEventType
) -> set[dg.AssetKey | None]:
    """Return the assets of a run's events of one type."""
    entries = events_of_run(context.instance, run.run_id, of_type)
    return {entry.get_dagster_event().asset_key for entry in entries}


def _first_table(context: MonitorContext, run: dg.DagsterRun) -> str:
    """Return the first selected table that a run did not publish; empty for one of a named job."""
    if not run.job_name.startswith("__"):
        return ""
    published = _keys_of(context, run, dg.DagsterEventType.ASSET_MATERIALIZATION)
    selected = (run.asset_selection or frozenset()) - published
    keys = [key for key in context.graph.toposorted_asset_keys if key in selected]
    return table_name(keys[0]) if keys else ""


def _retry_commands(
    run: dg.DagsterRun, table: str, partitions: frozenset[str]
) -> Iterator[str]:
    tags: Mapping[str, str] = run.tags
    if FEED_TAG in tags:
        # The path itself can contain a secret.
        yield f"lakehouse ingest {tags[FEED_TAG]}{' --path …' if PATH_TAG in tags else ''}"
    bounds = range_of(tags) if partitions else None
    if RECOMPUTED_FOR_ERASURE in tags:
        yield f"lakehouse erase --request {tags[RECOMPUTED_FOR_ERASURE]}"
    elif bounds and FEED_TAG not in tags:
        # Requested partitions are not stale: a retry would not compute them.
        yield f"lakehouse backfill {table} --from {bounds[0]} --to {bounds[1]}"
    elif table:
        yield f"lakehouse retry {table}"


def _at(entry: Any) -> datetime:
    return datetime.fromtimestamp(entry.timestamp, UTC)
