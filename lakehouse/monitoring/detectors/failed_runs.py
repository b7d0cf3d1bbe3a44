"""Runs that failed, and tables that are blocked since a rule refused what a run computed. A step
that failed is detected while the rest of its run continues.

A run that a check stopped is no incident of its own: the check is; nor is one of upkeep, whose
steps are, or one that erases people, whose request is. One that a person stopped is none either.
Of a refused table there is one incident, that it is blocked, with the results of its rules; that
it ends is a matter of a later publish, see `recoveries`.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from lakehouse.monitoring.detectors.ended_runs import ended_runs
from lakehouse.monitoring.detectors.failed_checks import (
    clear_commands,
    describe_failure,
    figures_of,
)
from lakehouse.monitoring.detectors.failure_reasons import reason_of
from lakehouse.monitoring.detectors.monitor_context import MonitorContext, describe_rows
from lakehouse.monitoring.incidents import Firing, Observed, moment_text
from lakehouse.orchestration.asset_keys import FEED_TAG, asset_key, table_name
from lakehouse.orchestration.blocked_tables import STALE
from lakehouse.orchestration.dagster_internals import events_of_run
from lakehouse.orchestration.erasure_runs import JOB as ERASE_PEOPLE
from lakehouse.orchestration.erasure_runs import REQUEST_TAG
from lakehouse.orchestration.error_causes import causes
from lakehouse.orchestration.metadata_keys import RefusalMetadata, WriteMetadata
from lakehouse.orchestration.partition_bounds import range_of
from lakehouse.orchestration.runs import UNFINISHED
from lakehouse.orchestration.runs_for_stale_tables import RECOMPUTED_FOR_ERASURE

CURSOR = "runs"
STEPS_CURSOR = "steps_of_runs"
"""By unfinished run, the keys of its failed steps that were detected."""
_UNNAMED = "marked as failed from outside the execution context"
"""Dagster's message for a failure whose cause is in another event of the run."""
_PROCESS_EVENT = re.compile(r"\(pid: \d+\)")
_KNOWN = {
    "DagsterAssetCheckFailedError",
    "DagsterExecutionInterruptedError",
    "KeyboardInterrupt",
    "UpkeepFailed",
}
"""Errors of steps that somebody knows of: a check is an incident itself, as is a step of
upkeep, and who pressed Ctrl-C needs no message.
"""
_TYPE = dg.DagsterEventType


def detect_failed_runs(context: MonitorContext) -> Observed:
    """Return the runs and steps that failed since the last round; in the first round, in the
    last week.
    """
    # Before the ended ones, so that a run that ends meanwhile is in either.
    records = context.instance.get_run_records(dg.RunsFilter(statuses=UNFINISHED))
    unfinished = [record.dagster_run for record in records]
    runs, cursor = ended_runs(context, CURSOR, [dg.DagsterRunStatus.FAILURE])
    detected: Mapping[str, list[str]] = context.state.cursors.get(STEPS_CURSOR, {})
    steps: dict[str, list[str]] = {}
    facts: list[Firing] = []
    for run in {run.run_id: run for run in (*unfinished, *runs)}.values():
        if run.job_name == ERASE_PEOPLE and REQUEST_TAG in run.tags:
            continue
        for step, firing in _failures_of(context, run, detected.get(run.run_id, ())):
            steps.setdefault(run.run_id, []).append(step)
            if firing is not None:
                facts.append(firing)
    kept = {run.run_id: steps[run.run_id] for run in unfinished if run.run_id in steps}
    return Observed(tuple(facts), cursors={CURSOR: cursor, STEPS_CURSOR: kept})


def _failures_of(
    context: MonitorContext, run: dg.DagsterRun, detected: Collection[str]
) -> Iterator[tuple[str, Firing | None]]:
    """Yield the key of each failed step of a run, with what fires; None where that was detected
    before, or is reported otherwise. Of a run that failed without a step, the key is empty.
    """
    of_type = {_TYPE.STEP_FAILURE, _TYPE.RUN_FAILURE}
    entries = events_of_run(context.instance, run.run_id, of_type)
    logged = [(entry, entry.get_dagster_event()) for entry in entries]
    steps = [
        (entry, event.step_failure_data) for entry, event in logged if event.is_step_failure
    ]
    for entry, failure in steps:
        step = entry.step_key or ""
        table = context.tables_of_steps.get(step)
        if step in detected or _is_known(failure.error):
            yield step, None
            continue
        reported = failure.user_failure_data
        refusal = RefusalMetadata.from_metadata(reported.metadata if reported else {})
        if table and refusal.branch is not None:
            yield step, _blocked(context, run, table, refusal, _at(entry))
        else:
            yield step, _failed(context, run, table or "", entry, failure.error)
    if not steps:
        for entry, event in logged:
            # A run that is reported as failed by another process, since its own is gone, has no
            # data of why.
            error = event.job_failure_data.error if event.event_specific_data else None
            if error is None and _UNNAMED in (entry.message or ""):
                error, entry = _named_cause(context, run, entry)
            if not _is_known(error):
                yield "", _failed(context, run, "", entry, error)


def _named_cause(context: MonitorContext, run: dg.DagsterRun, failure: Any) -> tuple[Any, Any]:
    """Return the error of a run that Dagster reports as failed without one, and the event that
    names the cause: Dagster logs it right before or after the failure.
    """
    entries = events_of_run(context.instance, run.run_id, _TYPE.ENGINE_EVENT)
    for entry in reversed(entries):
        data = entry.get_dagster_event().engine_event_data
        if data.error is not None:
            return data.error, entry
    for entry in reversed(entries):
        if not _PROCESS_EVENT.search(entry.message or ""):
            return None, entry
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
    broken = _broken_checks(context, run, table)
    rows = [row for evaluation in broken for row in figures_of(evaluation).sample]
    rule = f"rule {refusal.failed_rules}"
    unchanged = "is empty, as it was"
    if refusal.snapshot_id is not None:
        unchanged = f"is as it was, at snapshot {refusal.snapshot_id}"
    since = _since(context, table, refusal.snapshot_id)
    return context.firing(
        f"blocked {table}",
        "blocked",
        at,
        f"{table} is blocked: {rule} refused it",
        lines=(
            *map(describe_failure, broken),
            f"Nothing was published: {table} {unchanged}{since}.",
            *describe_rows(rows, context.masked_columns(table)),
        ),
        commands=(
            *clear_commands(broken),
            *_next_commands(context, table, run, refusal.branch or "", rows),
        ),
        table=table,
        run_id=run.run_id,
        affected_partitions=context.keys_of(table, run),
        brief=rule,
    )


def _broken_checks(context: MonitorContext, run: dg.DagsterRun, table: str) -> list[Any]:
    """Return the checks of a table that its run broke, errors first."""
    entries = events_of_run(context.instance, run.run_id, _TYPE.ASSET_CHECK_EVALUATION)
    events = [entry.get_dagster_event() for entry in entries]
    checks = [event.asset_check_evaluation_data for event in events]
    broken = [
        check for check in checks if not check.passed and table_name(check.asset_key) == table
    ]
    return sorted(broken, key=lambda check: check.severity != dg.AssetCheckSeverity.ERROR)


def _since(context: MonitorContext, table: str, snapshot_id: int | None) -> str:
    """Say since when a snapshot is what readers see, as far as Dagster remembers who published
    it.
    """
    event = context.instance.get_latest_materialization_event(asset_key(table))
    materialization = event.asset_materialization if event else None
    if materialization is None or snapshot_id is None:
        return ""
    published = WriteMetadata.from_metadata(materialization.metadata).snapshot_id
    return f" of {moment_text(_at(event))}" if published == snapshot_id else ""


def _next_commands(
    context: MonitorContext,
    table: str,
    run: dg.DagsterRun,
    branch: str,
    rows: Sequence[Mapping[str, Any]],
) -> Iterator[str]:
    if branch:
        yield f"lakehouse sql \"SELECT * FROM {table} VERSION AS OF '{branch}'\""
    yield from context.reject_commands(table, rows)
    yield f"lakehouse retry {table}"
    if branch:
        # Where nothing was staged, there is nothing to publish.
        yield f"lakehouse publish {table} --run {run.run_id[:8]} --why …"


def _failed(
    context: MonitorContext, run: dg.DagsterRun, table: str, entry: Any, error: Any
) -> Firing:
    feed = run.tags.get(FEED_TAG)
    selected = run.asset_selection or frozenset()
    planned = [
        table_name(key) for key in context.graph.toposorted_asset_keys if key in selected
    ]
    is_of_job = bool(feed) or not run.job_name.startswith("__") or not planned
    named = table or ("" if is_of_job else planned[0])
    failed = f"job {run.job_name}"
    what = failed
    if named:
        failed = what = named
    elif feed:
        failed, what = f"feed {feed}", f"the ingest of {feed}"
    bronze = next((watched.table for watched in context.feeds if watched.name == feed), "")
    of_table = named or bronze
    keys = context.keys_of(named, run) if named else frozenset()
    reason = reason_of(error, context.declared.get(of_table)) or _first_line(entry.message)
    commands = [f"lakehouse ingest {feed}"] if feed else []
    return context.firing(
        f"failed {failed}",
        "failed",
        _at(entry),
        f"{what}: the run failed",
        lines=[reason],
        commands=(*commands, *_commands_again(run, named, keys), "lakehouse doctor"),
        table=of_table,
        run_id=run.run_id,
        affected_partitions=keys,
        brief=reason,
        # A sensor asked for it, and asks again after a while.
        heals=STALE in run.tags,
    )


def _commands_again(run: dg.DagsterRun, table: str, keys: frozenset[str]) -> Iterator[str]:
    bounds = range_of(run.tags) if keys else None
    if RECOMPUTED_FOR_ERASURE in run.tags:
        yield f"lakehouse erase --request {run.tags[RECOMPUTED_FOR_ERASURE]}"
    elif bounds and FEED_TAG not in run.tags:
        # Partitions that somebody asked for are not stale, so that a retry would not compute
        # them.
        yield f"lakehouse backfill {table} --from {bounds[0]} --to {bounds[1]}"
    elif table:
        yield f"lakehouse retry {table}"


def _first_line(text: str | None) -> str:
    if not text or _UNNAMED in text:
        return "It ended without an error message; its events in the UI show the last step."
    return text.strip().splitlines()[0]


def _at(entry: Any) -> datetime:
    return datetime.fromtimestamp(entry.timestamp, UTC)
