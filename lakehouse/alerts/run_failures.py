"""Failed steps and runs, and tables that a rule blocked, from events of runs.

Known failures are not incidents of their own: a check that stopped a run and a failed maintenance
step are incidents already, and an interrupted run was stopped by a user.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from lakehouse.alerts.check_facts import clear_commands, describe_failure
from lakehouse.alerts.failure_reasons import reason_of
from lakehouse.alerts.incidents import Firing
from lakehouse.alerts.monitor_context import MonitorContext, describe_rows
from lakehouse.orchestration.asset_keys import FEED_TAG, table_name
from lakehouse.orchestration.blocked_tables import STALE
from lakehouse.orchestration.dagster_internals import events_of_run
from lakehouse.orchestration.error_causes import causes
from lakehouse.orchestration.metadata_keys import CheckMetadata, RefusalMetadata
from lakehouse.orchestration.partition_bounds import range_of
from lakehouse.orchestration.runs_for_stale_tables import RECOMPUTED_FOR_ERASURE

_UNNAMED = "marked as failed from outside the execution context"
"""Dagster's message for a failure whose cause is in another event of the run."""
_PROCESS_EVENT = re.compile(r"\(pid: \d+\)")
_KNOWN = {
    "DagsterAssetCheckFailedError",
    "DagsterExecutionInterruptedError",
    "KeyboardInterrupt",
    "UpkeepFailed",
}


def failure_facts(
    context: MonitorContext, run: dg.DagsterRun, entry: dg.EventLogEntry
) -> Iterator[Firing]:
    """Yield the incident of a failed step, or of a run that failed without a failed step."""
    event = entry.get_dagster_event()
    if event.is_step_failure:
        yield from _step_facts(context, run, entry)
    elif not events_of_run(context.instance, run.run_id, dg.DagsterEventType.STEP_FAILURE, 1):
        # Another process that reports the failure of a dead run has no data.
        error = event.job_failure_data.error if event.event_specific_data else None
        if error is None and _UNNAMED in (entry.message or ""):
            error, entry = _named_cause(context, run, entry)
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
    refusal = RefusalMetadata.from_metadata(reported.metadata if reported else {})
    if table and refusal.branch is not None:
        yield _blocked(context, run, table, refusal, _at(entry))
    else:
        yield _failed(context, run, table or "", entry, failure.error)


def _named_cause(context: MonitorContext, run: dg.DagsterRun, failure: Any) -> tuple[Any, Any]:
    """Return the error and event that Dagster logged next to a failure without an error."""
    events = events_of_run(context.instance, run.run_id, dg.DagsterEventType.ENGINE_EVENT)
    for entry in reversed(events):
        error = entry.get_dagster_event().engine_event_data.error
        if error is not None or not _PROCESS_EVENT.search(entry.message or ""):
            return error, entry
    return None, failure


def _is_known(error: Any) -> bool:
    return any(cause.cls_name in _KNOWN for cause in causes(error))


def _blocked(
    context: MonitorContext,
    run: dg.DagsterRun,
    table: str,
    refusal: RefusalMetadata,
    at: datetime,
) -> Firing:
    failed = _failed_checks(context, run, table)
    metadata = [CheckMetadata.from_metadata(evaluation.metadata) for evaluation in failed]
    rows = [row for record in metadata for row in record.sample]
    rule, branch = f"rule {refusal.failed_rules}", refusal.branch
    still = f"at snapshot {refusal.snapshot_id}" if refusal.snapshot_id else "empty"
    commands = [*clear_commands(failed)]
    if branch:
        commands.append(f"lakehouse sql \"SELECT * FROM {table} VERSION AS OF '{branch}'\"")
    commands += [*context.reject_commands(table, rows), f"lakehouse retry {table}"]
    if branch:
        commands.append(f"lakehouse publish {table} --run {run.run_id[:8]} --why …")
    return context.firing(
        f"blocked {table}",
        "blocked",
        at,
        f"{table} is blocked: {rule} refused it",
        lines=(
            *map(describe_failure, failed),
            f"Nothing was published: {table} is still {still}.",
            *describe_rows(rows, context.masked_columns(table)),
        ),
        commands=commands,
        table=table,
        run_id=run.run_id,
        affected_partitions=context.partitions_of_run(table, run),
        brief=rule,
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
    reason = reason_of(error, context.declared.get(name or bronze)) or _first_line(entry)
    return context.firing(
        f"failed {failed}",
        "failed",
        _at(entry),
        f"{title}: the run failed",
        lines=[reason],
        commands=[*_retry_commands(run, name, partitions), "lakehouse doctor"],
        table=name or bronze,
        run_id=run.run_id,
        affected_partitions=partitions,
        brief=reason,
        # The sensor that requested the run retries it.
        heals=STALE in run.tags,
    )


def _first_table(context: MonitorContext, run: dg.DagsterRun) -> str:
    """Return the first selected table of a run that is not of a named job, or an empty string."""
    if not run.job_name.startswith("__"):
        return ""
    selected = run.asset_selection or frozenset()
    keys = [key for key in context.graph.toposorted_asset_keys if key in selected]
    return table_name(keys[0]) if keys else ""


def _retry_commands(
    run: dg.DagsterRun, table: str, partitions: frozenset[str]
) -> Iterator[str]:
    tags: Mapping[str, str] = run.tags
    if FEED_TAG in tags:
        yield f"lakehouse ingest {tags[FEED_TAG]}"
    bounds = range_of(tags) if partitions else None
    if RECOMPUTED_FOR_ERASURE in tags:
        yield f"lakehouse erase --request {tags[RECOMPUTED_FOR_ERASURE]}"
    elif bounds and FEED_TAG not in tags:
        # Requested partitions are not stale: a retry would not compute them.
        yield f"lakehouse backfill {table} --from {bounds[0]} --to {bounds[1]}"
    elif table:
        yield f"lakehouse retry {table}"


def _first_line(entry: Any) -> str:
    text = entry.message or ""
    if not text.strip() or _UNNAMED in text:
        return "It failed without an error message; its events in the UI show the last step."
    return str(text.strip().splitlines()[0])


def _at(entry: Any) -> datetime:
    return datetime.fromtimestamp(entry.timestamp, UTC)
