"""Runs that failed, and tables that a run refused and so held back.

A run that a check stopped is not told again: the check is. One that a person stopped is not
told either. Of a refused table one thing is told, that it is held back, with what its rules
said; that it ends is a matter of a later publish, see `mending`.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg

from lakehouse.monitoring.detectors.failed_checks import by_how_much, figures_of, in_clear
from lakehouse.monitoring.detectors.failure_reasons import reason_of
from lakehouse.monitoring.detectors.sources import MonitorContext, shown_rows
from lakehouse.monitoring.incidents import Firing, Observed, moment_text
from lakehouse.orchestration.asset_keys import FEED_TAG, asset_key, table_name
from lakehouse.orchestration.blocked_tables import STALE
from lakehouse.orchestration.metadata_keys import RefusalMetadata, WriteMetadata
from lakehouse.orchestration.partitions import range_of

CURSOR = "runs"
_FIRST_LOOK = timedelta(days=7)
# Runs are seen by when they ended, on clocks that may differ and in transactions that may be
# slow.
_OVERLAP = timedelta(minutes=5)
_KNOWN = {
    "DagsterAssetCheckFailedError",
    "DagsterExecutionInterruptedError",
    "KeyboardInterrupt",
}
"""Errors of steps that somebody knows of: a check tells itself, and who pressed Ctrl-C needs no
message.
"""
_TYPE = dg.DagsterEventType


def detect_failed_runs(context: MonitorContext, cursors: Mapping[str, Any]) -> Observed:
    """Return what the runs say that failed since the last look; at the first look, in the last
    week.
    """
    known = cursors.get(CURSOR, {})
    since = (
        datetime.fromisoformat(known["until"]) - _OVERLAP
        if known
        else context.now - _FIRST_LOOK
    )
    filters = dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE], updated_after=since)
    records = context.instance.get_run_records(
        filters, order_by="update_timestamp", ascending=True
    )
    # A tag that is added to an old run makes it a run that was changed, and not one that failed
    # anew.
    ended = (
        record
        for record in records
        if (record.end_time or context.now.timestamp()) >= since.timestamp()
    )
    news = [
        record.dagster_run
        for record in ended
        if record.dagster_run.run_id not in known.get("seen", ())
    ]
    facts = tuple(fact for run in news for fact in _of_run(context, run))
    seen = [record.dagster_run.run_id for record in records]
    return Observed(facts, cursors={CURSOR: {"until": context.now.isoformat(), "seen": seen}})


def _of_run(context: MonitorContext, run: dg.DagsterRun) -> Iterator[Firing]:
    of_type = {_TYPE.STEP_FAILURE, _TYPE.RUN_FAILURE}
    records = context.instance.get_records_for_run(run.run_id, of_type=of_type).records
    logged = [
        (record.event_log_entry, record.event_log_entry.get_dagster_event())
        for record in records
    ]
    steps = [
        (entry, event.step_failure_data) for entry, event in logged if event.is_step_failure
    ]
    for entry, failure in steps:
        table = context.tables_of_steps.get(entry.step_key or "")
        if _is_known(failure.error):
            continue
        shown = failure.user_failure_data
        refusal = RefusalMetadata.from_metadata(shown.metadata if shown else {})
        if table and refusal.branch is not None:
            yield _held(context, run, table, refusal, _at(entry))
        else:
            yield _failed(context, run, table or "", entry, failure.error)
    if not steps:
        for entry, event in logged:
            # A run that is reported as failed by another process, since its own is gone, has no
            # data of why.
            error = event.job_failure_data.error if event.event_specific_data else None
            if not _is_known(error):
                yield _failed(context, run, "", entry, error)


def _is_known(error: Any) -> bool:
    return error is not None and error.cls_name in _KNOWN


def _held(
    context: MonitorContext,
    run: dg.DagsterRun,
    table: str,
    refusal: RefusalMetadata,
    at: datetime,
) -> Firing:
    broken = _broken_checks(context, run, table)
    declared = context.declared.get(table)
    personal = declared.masked_columns if declared else frozenset()
    rows = [row for check in broken for row in figures_of(check).sample]
    rule = f"rule {refusal.failed_rules}"
    good = "is empty, as it was"
    if refusal.snapshot_id is not None:
        good = f"is as it was, at snapshot {refusal.snapshot_id}"
    return Firing(
        f"held {table}",
        "held",
        at,
        "error",
        f"{table} is held back: {rule} refused it",
        (
            *map(by_how_much, broken),
            f"Nothing was published: {table} {good}{_since(context, table, refusal.snapshot_id)}.",
            *shown_rows(rows, personal),
            *context.whose(table),
        ),
        context.links(run_id=run.run_id, table=table),
        (
            *in_clear(broken),
            *_ways_out(context, table, run, refusal.branch or "", rows),
        ),
        table,
        context.owner(table),
        run.run_id,
        context.keys_of(table, run),
        brief=rule,
    )


def _broken_checks(context: MonitorContext, run: dg.DagsterRun, table: str) -> list[Any]:
    """Return the checks of a table that its run broke, errors first."""
    records = context.instance.get_records_for_run(
        run.run_id, of_type=_TYPE.ASSET_CHECK_EVALUATION
    ).records
    events = [record.event_log_entry.get_dagster_event() for record in records]
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


def _ways_out(
    context: MonitorContext,
    table: str,
    run: dg.DagsterRun,
    branch: str,
    rows: Sequence[Mapping[str, Any]],
) -> Iterator[str]:
    if branch:
        yield f"lakehouse sql \"SELECT * FROM {table} VERSION AS OF '{branch}'\""
    yield from context.rejects(table, rows)
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
    what = f"the ingest of {feed}" if feed else f"job {run.job_name}"
    reads = next((one.table for one in context.feeds if one.name == feed), "")
    of_table = named or reads
    keys = context.keys_of(named, run) if named else frozenset()
    reason = reason_of(error, context.declared.get(of_table)) or _first_line(entry.message)
    return Firing(
        (
            f"failed {named}"
            if named
            else f"failed feed {feed}"
            if feed
            else f"failed job {run.job_name}"
        ),
        "failed",
        _at(entry),
        "error",
        f"{named or what}: the run failed",
        (reason, *_whose(context, of_table)),
        context.links(run_id=run.run_id, table=of_table),
        (
            *([f"lakehouse ingest {feed}"] if feed else []),
            *_again(run, named, keys),
            "lakehouse doctor",
        ),
        of_table,
        context.owner(of_table),
        run.run_id,
        keys,
        brief=reason,
        # A sensor asked for it, and asks again after a while.
        heals=STALE in run.tags,
    )


def _again(run: dg.DagsterRun, table: str, keys: frozenset[str]) -> Iterator[str]:
    bounds = range_of(run.tags) if keys else None
    if bounds and FEED_TAG not in run.tags:
        # Nothing is owed for partitions that somebody asked for, so that a retry would not
        # compute them.
        yield f"lakehouse backfill {table} --from {bounds[0]} --to {bounds[1]}"
    elif table:
        yield f"lakehouse retry {table}"


def _first_line(text: str | None) -> str:
    return next(iter((text or "").strip().splitlines()), "It ended without saying why.")


def _whose(context: MonitorContext, table: str) -> list[str]:
    return context.whose(table) if table else []


def _at(entry: Any) -> datetime:
    return datetime.fromtimestamp(entry.timestamp, UTC)
