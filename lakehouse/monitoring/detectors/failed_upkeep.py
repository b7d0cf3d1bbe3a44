"""Steps of upkeep that failed, or left behind what they were to delete: an incident for each
step of each table, until it goes through.

That a writer came first is none: upkeep gives way on purpose, and is due again.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from lakehouse.iceberg.upkeep.step_result import StepResult
from lakehouse.monitoring.detectors.ended_runs import ended_runs
from lakehouse.monitoring.detectors.failure_reasons import remove_values
from lakehouse.monitoring.detectors.monitor_context import MonitorContext
from lakehouse.monitoring.incidents import Firing, Observed, Resolved
from lakehouse.orchestration.asset_keys import table_name
from lakehouse.orchestration.dagster_internals import events_of_run, observation_in
from lakehouse.orchestration.metadata_keys import plain_values
from lakehouse.orchestration.upkeep_results import JOB, step_result_of

CURSOR = "upkeep"
_ENDED = (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE)
_SHOWN_PATHS = 5


def detect_failed_upkeep(context: MonitorContext) -> Observed:
    """Return what came of the steps of upkeep that ended since the last round."""
    runs, cursor = ended_runs(context, CURSOR, _ENDED, JOB)
    facts: list[Firing | Resolved] = []
    for run in runs:
        for result, at in _results_of(context, run):
            if not result.lost_race:
                facts.append(_fact(context, run, result, at))
    return Observed(tuple(facts), cursors={CURSOR: cursor})


def _results_of(
    context: MonitorContext, run: dg.DagsterRun
) -> Iterator[tuple[StepResult, datetime]]:
    of_type = dg.DagsterEventType.ASSET_OBSERVATION
    for entry in events_of_run(context.instance, run.run_id, of_type):
        observation = observation_in(entry.get_dagster_event())
        if observation is None:
            continue
        metadata = plain_values(observation.metadata)
        result = step_result_of(table_name(observation.asset_key), metadata)
        if result is not None:
            yield result, datetime.fromtimestamp(entry.timestamp, UTC)


def _fact(
    context: MonitorContext, run: dg.DagsterRun, result: StepResult, at: datetime
) -> Firing | Resolved:
    table, step = result.table, result.step
    key = f"upkeep {table} {step}"
    if result.outcome in ("done", "skipped"):
        links = context.links(run_id=run.run_id, table=table)
        how = f"{step} of {table} went through in run {run.run_id[:8]}."
        return Resolved(key, at, how, links=links)
    is_failed = result.outcome == "failed"
    reason = _reason(context, result)
    return context.firing(
        key,
        "upkeep",
        at,
        f"{table}: {step} {'failed' if is_failed else 'is done in part'}",
        lines=[reason, *_remaining_lines(result)],
        commands=[f"lakehouse maintain {table} --dry-run", f"lakehouse maintain {table}"],
        severity="error" if is_failed else "warn",
        table=table,
        run_id=run.run_id,
        brief=reason,
        # The sensor asks for it again after a while.
        heals=is_failed,
    )


def _reason(context: MonitorContext, result: StepResult) -> str:
    """Say why a step failed; what others than the lakehouse said of it may quote data."""
    if not result.error:
        return result.reason
    table: Any = context.declared.get(result.table)
    if table is None or table.has_personal_data:
        return f"{result.error}; its text may quote data, the run has it."
    return f"{result.error}: {remove_values(result.reason)}"


def _remaining_lines(result: StepResult) -> Iterator[str]:
    for path in result.remaining[:_SHOWN_PATHS]:
        yield f"Still there: {path}"
    more = len(result.remaining) - _SHOWN_PATHS
    if more > 0:
        yield f"and {more:,} more, which the run names."
