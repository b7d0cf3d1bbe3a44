"""Dagster job and nightly schedule of upkeep, and its execution in this process."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import dagster as dg
from pydantic import Field

from lakehouse.errors import UpkeepFailed
from lakehouse.iceberg.upkeep.step_result import StepResult
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.dagster_internals import observation_in
from lakehouse.orchestration.metadata_keys import plain_values
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.run_in_process import MakeDefinitions, run_job
from lakehouse.orchestration.runs.upkeep_results import JOB, PREFIX, metadata_of, step_result_of
from lakehouse.settings import Settings
from lakehouse.upkeep.health_records import record_health
from lakehouse.upkeep.upkeep_plan import PlannedStep
from lakehouse.upkeep.upkeep_run import (
    Upkept,
    carry_out,
    pins_of,
    plan_run,
    with_cached_locations,
)

_OP = "do_what_is_due"
_COUNT_NOUNS = {
    "expired_snapshots": "snapshots expired",
    "dropped_branches": "branches dropped",
    "removed_files": "files removed",
}


class UpkeepConfig(dg.Config):
    """Configuration of an upkeep run."""

    tables: list[str] = Field(default_factory=list)
    """Table names; empty for all existing tables."""
    asked_by_name: bool = False
    """Whether a user named these tables: ignores recent writes and budget."""


def run_config(tables: Sequence[str], *, named_by_user: bool = False) -> dict[str, Any]:
    """Return the run config for tables."""
    config = {"tables": list(tables), "asked_by_name": named_by_user}
    return {"ops": {_OP: {"config": config}}}


def upkeep_job(upkept: Upkept) -> dg.JobDefinition:
    """Create the upkeep job for the tables of a deployment."""

    @dg.op(
        name=_OP,
        description="Measures tables, plans their upkeep, and does what is due.",
        out=dg.Out(dg.Nothing),
        required_resource_keys={"engine"},
    )
    def maintain_due(context: dg.OpExecutionContext, config: UpkeepConfig) -> None:
        _run(context, upkept, config)

    @dg.job(
        name=JOB,
        description=(
            "Upkeep of tables: compaction, expiry of snapshots, manifests, orphans, stale"
            " branches; each where the table's health calls for it."
        ),
    )
    def maintain_tables() -> None:
        maintain_due()

    return maintain_tables


def nightly_schedule(job: dg.JobDefinition) -> dg.ScheduleDefinition:
    """Create the nightly schedule, on by default."""
    return dg.ScheduleDefinition(
        job=job,
        name="upkeep_nightly",
        cron_schedule="37 2 * * *",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Checks all tables once a night, also while the sensor is off.",
    )


def _run(context: dg.OpExecutionContext, upkept: Upkept, config: UpkeepConfig) -> None:
    engine = context.resources.engine
    cached_engine = engine if config.tables else with_cached_locations(engine, upkept)
    tables = config.tables or upkept.tables(cached_engine)
    plan = plan_run(cached_engine, upkept, tables, named_by_user=config.asked_by_name)
    for name, reason in plan.unread.items():
        context.log.warning("%s is not kept: %s", name, reason)
    if not plan.due:
        context.log.info("No upkeep is due of %s tables: nothing was done.", len(tables))

    def on_step(step: PlannedStep, result: StepResult) -> None:
        context.log_event(_observation(step, result))

    records = carry_out(engine, upkept, plan, context.run_id, on_step)
    cached_engine = engine if config.tables else with_cached_locations(engine, upkept)
    record_health(
        context.instance,
        engine,
        upkept.health_table,
        config.tables or sorted(cached_engine.catalog.metadata_locations()),
        upkept.declared,
        context.run_id,
        known=plan.healths,
        find_pins=partial(pins_of, cached_engine, upkept),
        cached_engine=cached_engine,
    )
    failed = [record for record in records if record.outcome == "failed"]
    if failed:
        raise UpkeepFailed(
            "; ".join(f"{one.table}: {one.step} failed: {one.reason}" for one in failed),
            next_step="The other steps are done; it is retried automatically.",
        )


def _observation(step: PlannedStep, result: StepResult) -> dg.AssetObservation:
    """Return the observation of a step, with estimate and result as plotted numbers."""
    metadata: dict[str, Any] = {
        **metadata_of(result),
        f"{PREFIX}why": step.reason,
        f"{PREFIX}promised_fewer_files": step.fewer_files,
        f"{PREFIX}promised_cost_bytes": step.cost_bytes,
    }
    return dg.AssetObservation(
        asset_key(result.table), description=result_text(result), metadata=metadata
    )


def result_text(result: StepResult) -> str:
    """Return a one-line summary of a step."""
    parts = [f"{result.step} {result.outcome}"]
    metrics = result.step_metrics
    for noun in ("files", "manifests"):
        if f"{noun}_before" in metrics:
            before, after = metrics[f"{noun}_before"], metrics[f"{noun}_after"]
            parts.append(f"{before:.0f} to {after:.0f} {noun}")
    for name, noun in _COUNT_NOUNS.items():
        if metrics.get(name):
            parts.append(f"{metrics[name]:.0f} {noun}")
    text = ", ".join(parts)
    return f"{text}: {result.reason}" if result.reason else text


@dataclass(frozen=True)
class MaintainResult:
    """Result of an upkeep run: steps in order, and other errors."""

    steps: Sequence[StepResult]
    success: bool
    messages: Sequence[str]


def maintain(
    project: MakeDefinitions, settings: Settings, tables: Sequence[str], *, named_by_user: bool
) -> MaintainResult:
    """Run the due upkeep steps of tables in this process, as a Dagster run."""
    steps: list[StepResult] = []

    def on_event(event: dg.DagsterEvent) -> None:
        observation = observation_in(event)
        if observation is None:
            return
        step = step_result_of(plain_values(observation.metadata))
        if step is not None:
            steps.append(step)

    config = run_config(tables, named_by_user=named_by_user)
    with open_instance(settings) as instance:
        result = run_job(project(lambda: settings), instance, JOB, config, on_event)
    return MaintainResult(steps, result.success, result.messages)
