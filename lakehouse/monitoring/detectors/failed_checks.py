"""Failed checks: whatever evaluated them, a run, a person alone, or something outside of runs.

The results of rules that refused a table are left out: that it is blocked is an incident of
its own, see `failed_runs`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime, timedelta
from shlex import quote
from typing import Any, TypeGuard

import dagster as dg
from dagster import AssetCheckEvaluation, AssetCheckKey

from lakehouse.monitoring.detectors.monitor_context import MonitorContext, describe_rows
from lakehouse.monitoring.incidents import Firing, Observed, Resolved, moment_text
from lakehouse.orchestration.asset_checks import is_of_quarantine
from lakehouse.orchestration.asset_keys import table_name
from lakehouse.orchestration.dagster_internals import (
    check_executions,
    is_of_one_host,
    latest_check_executions,
    newest_event,
)
from lakehouse.orchestration.metadata_keys import CheckMetadata
from lakehouse.orchestration.runs import UNFINISHED

CURSOR = "checks"
EVENT_CURSOR = "checks_up_to"
_LOOKS_AT_EVENT = 2
"""What an event tells of a check, and of the state of a run, is written a moment after it; the
second look is ten seconds after the first.
"""
_LOOKS_ANYWAY_AFTER = timedelta(minutes=1)
"""Of two events that PostgreSQL writes at once, the one of the higher number may be seen first."""
_LOOKS_ANYWAY_ON_ONE_HOST = timedelta(minutes=10)
"""SQLite writes one after the other; this is for what it took longer than two looks to write."""
_BEGIN = ""
"""Instead of a check, when was first monitored: since then counts all that a check found."""
_LOOKED_BACK = 50
_EVALUATED = ("SUCCEEDED", "FAILED")
_PLANNED = "PLANNED"
_GIVEN_UP = "given up"
"""Before a check: the execution that was planned last of it, and never was."""


def detect_failed_checks(context: MonitorContext) -> Observed:
    """Return what checks found since the last round; in the first, what each found last.

    Where no event came since, the checks, of which there may be thousands, are asked for once in
    ten minutes, and once a minute where a database server has them.
    """
    looked = _looked(context)
    if looked["times"] > _LOOKS_AT_EVENT and not _is_long_ago(context):
        return Observed()
    return _detect(context) + Observed(cursors={EVENT_CURSOR: looked})


def _is_long_ago(context: MonitorContext) -> bool:
    """Whether the last look was, by a cursor that names no moment in homes of before."""
    looked_at: float = context.state.cursors[EVENT_CURSOR].get("at", 0.0)
    is_one_host = is_of_one_host(context.instance)
    after = _LOOKS_ANYWAY_ON_ONE_HOST if is_one_host else _LOOKS_ANYWAY_AFTER
    return context.now.timestamp() - looked_at >= after.total_seconds()


def _looked(context: MonitorContext) -> Mapping[str, Any]:
    """Return up to which event the checks are looked at, and how often they were, this time
    included.
    """
    event, checks = newest_event(context.instance), len(context.graph.asset_check_keys)
    before = context.state.cursors.get(EVENT_CURSOR, {})
    is_same = event is not None and (event, checks) == (
        before.get("event"),
        before.get("checks"),
    )
    times = before["times"] + 1 if is_same else 1
    return {"event": event, "checks": checks, "times": times, "at": context.now.timestamp()}


def _detect(context: MonitorContext) -> Observed:
    cursor = context.state.cursors.get(CURSOR)
    is_first = cursor is None
    seen: dict[str, float] = dict(cursor or {_BEGIN: context.now.timestamp()})
    facts: list[Firing | Resolved] = []
    latest = _latest(context)
    given_up = _given_up(context, latest)
    for key, last in latest.items():
        name = key_of(key)
        since = 0.0 if is_first else seen.get(name, seen[_BEGIN])
        # One that is only planned may stand before an evaluation that nobody saw yet.
        if last.status.value in _EVALUATED and last.event and last.event.timestamp <= since:
            continue
        if key in given_up:
            if seen.get(f"{_GIVEN_UP} {name}") == last.id:
                continue
            seen[f"{_GIVEN_UP} {name}"] = last.id
        events = _events(context, key)
        news = [event for event in events if event.timestamp > since]
        for event in events[:1] if is_first else news:
            seen[name] = max(event.timestamp, seen.get(name, event.timestamp))
            fact = _fact(context, key, event, events)
            if fact:
                facts.append(fact)
    return Observed(tuple(facts), cursors={CURSOR: seen})


def key_of(key: AssetCheckKey) -> str:
    """Return what a check is known by."""
    return f"check {table_name(key.asset_key)} {key.name}"


def figures_of(evaluation: AssetCheckEvaluation) -> CheckMetadata:
    """Return what a check evaluated and counted; personal values are masked in its sample."""
    return CheckMetadata.from_metadata(evaluation.metadata)


def describe_failure(evaluation: AssetCheckEvaluation) -> str:
    """Say what a check found, and the fraction of rows where it counted some."""
    text = f"{evaluation.check_name}: {evaluation.description or 'it did not pass.'}"
    figures = figures_of(evaluation)
    if not figures.failed_rows or not figures.total_rows:
        return text
    tolerated = f"; {figures.threshold:.2%} are tolerated" if figures.threshold else ""
    return f"{text} That is {figures.failed_rows / figures.total_rows:.2%}{tolerated}."


def _brief(figures: CheckMetadata) -> str:
    if not figures.failed_rows or figures.total_rows is None:
        return ""
    return f"{figures.failed_rows:,} of {figures.total_rows:,} rows"


def clear_commands(evaluations: Iterable[AssetCheckEvaluation]) -> tuple[str, ...]:
    """Return the commands that show the rows of samples in clear."""
    commands = (figures_of(evaluation).rows_in_clear for evaluation in evaluations)
    return tuple(dict.fromkeys(command for command in commands if command))


def _latest(context: MonitorContext) -> Mapping[AssetCheckKey, Any]:
    """Return the last execution of each check that is declared."""
    keys = context.graph.asset_check_keys
    latest = latest_check_executions(context.instance, list(keys))
    return {key: record for key, record in latest.items() if key in keys}


def _given_up(
    context: MonitorContext, latest: Mapping[AssetCheckKey, Any]
) -> Set[AssetCheckKey]:
    """Return the checks that were planned last by a run that is over, such as one of figures
    without a past: what was evaluated before is seen once.
    """
    planned = {
        key: last.run_id for key, last in latest.items() if last.status.value == _PLANNED
    }
    if not planned:
        return set()
    asked = dg.RunsFilter(run_ids=sorted(set(planned.values())), statuses=UNFINISHED)
    going_on = {record.dagster_run.run_id for record in context.instance.get_run_records(asked)}
    return {key for key, run_id in planned.items() if run_id not in going_on}


def _events(context: MonitorContext, key: AssetCheckKey) -> list[Any]:
    """Return the last evaluations of a check, the newest first."""
    records = check_executions(context.instance, key, _LOOKED_BACK)
    events = (record.event for record in records if record.event is not None)
    return [event for event in events if is_evaluation(event.dagster_event)]


def is_evaluation(event: dg.DagsterEvent | None) -> TypeGuard[dg.DagsterEvent]:
    """Whether a check was evaluated there: of one that was planned and never was, the event is
    that of its planning.
    """
    return event is not None and event.event_type_value == "ASSET_CHECK_EVALUATION"


def _fact(
    context: MonitorContext, key: AssetCheckKey, event: Any, events: Sequence[Any]
) -> Firing | Resolved | None:
    evaluation = event.dagster_event.event_specific_data
    figures = figures_of(evaluation)
    if figures.evaluated == "candidate":
        return None
    table, run_id = table_name(key.asset_key), event.run_id or ""
    if is_of_quarantine(context.declared.get(table), evaluation, event.run_id):
        # It is among the rows in quarantine, see `quarantined_rows`.
        return None
    at = datetime.fromtimestamp(event.timestamp, UTC)
    if evaluation.passed:
        links = context.links(run_id=run_id, table=table)
        by = f" in run {run_id[:8]}" if run_id else ""
        how = f"Check {key.name} passed{by}."
        return Resolved(key_of(key), at, how, frozenset(figures.partitions), links)
    earlier = [previous for previous in events if previous.timestamp < event.timestamp]
    return _firing(context, key, evaluation, at, run_id, earlier)


def _firing(
    context: MonitorContext,
    key: AssetCheckKey,
    evaluation: AssetCheckEvaluation,
    at: datetime,
    run_id: str,
    earlier: Sequence[Any],
) -> Firing:
    table = table_name(key.asset_key)
    is_error = evaluation.severity == dg.AssetCheckSeverity.ERROR
    figures = figures_of(evaluation)
    partitions = frozenset(figures.partitions)
    rows = figures.sample
    return context.firing(
        key_of(key),
        "check",
        at,
        f"{table}: check {key.name} {'failed' if is_error else 'warns'}",
        lines=(
            describe_failure(evaluation),
            _describe_last_pass(earlier),
            *describe_rows(rows, context.masked_columns(table)),
        ),
        commands=(
            *clear_commands([evaluation]),
            *_next_commands(context, table, key.name, partitions, rows, is_error=is_error),
        ),
        severity="error" if is_error else "warn",
        table=table,
        run_id=run_id,
        affected_partitions=partitions,
        brief=_brief(figures),
        state=str(figures.snapshot_id or ""),
    )


def _describe_last_pass(earlier: Sequence[Any]) -> str:
    """Say when a check passed last, and on which snapshot."""
    for event in earlier:
        evaluation = event.dagster_event.event_specific_data
        figures = figures_of(evaluation)
        if evaluation.passed and figures.evaluated != "candidate":
            at = moment_text(datetime.fromtimestamp(event.timestamp, UTC))
            where = f", on snapshot {figures.snapshot_id}" if figures.snapshot_id else ""
            return f"It passed last at {at}{where}."
    if not earlier:
        return "It was never evaluated before."
    return f"It passed in none of its last {len(earlier)} evaluations."


def _next_commands(
    context: MonitorContext,
    table: str,
    check: str,
    affected_partitions: frozenset[str],
    rows: Sequence[Mapping[str, Any]],
    *,
    is_error: bool,
) -> Iterator[str]:
    """Yield what shows the rows, and what resolves it; that a check is made once more resolves
    nothing.
    """
    declared = context.declared.get(table)
    for rule in declared.row_rules if declared else ():
        broken_by = declared.broken_by(rule) if declared and rule.name == check else "false"
        if broken_by != "false":
            yield f"lakehouse sql {quote(f'SELECT * FROM {table} WHERE {broken_by} LIMIT 20')}"
    if not is_error:
        yield f"lakehouse check {table}"
        yield f"lakehouse mute {table} --until 2h"
        return
    yield from context.reject_commands(table, rows)
    if affected_partitions:
        first, last = min(affected_partitions), max(affected_partitions)
        yield f"lakehouse backfill {table} --from {first} --to {last}"
    else:
        yield f"lakehouse retry {table}"
    yield f"lakehouse history {table}"
