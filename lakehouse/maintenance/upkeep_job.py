"""Dagster job, sensor and nightly schedule of upkeep."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import dagster as dg
from pydantic import Field

from lakehouse.errors import UpkeepFailed
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.upkeep.step_result import StepResult
from lakehouse.maintenance.record_health import record_health
from lakehouse.maintenance.upkeep_cursor import UpkeepCursor
from lakehouse.maintenance.upkeep_events import observation_of
from lakehouse.maintenance.upkeep_plan import PlannedStep
from lakehouse.maintenance.upkeep_round import (
    Upkept,
    carry_out,
    pins_of,
    plan_round,
    with_cached_locations,
)
from lakehouse.orchestration.upkeep_results import JOB
from lakehouse.runtime.deployment import open_engine
from lakehouse.settings import Settings

_OP = "do_what_is_due"
SENSOR = "upkeep_when_due"
_SECONDS = 300
_WORKING = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
]


class UpkeepConfig(dg.Config):
    """Configuration of an upkeep run."""

    tables: list[str] = Field(default_factory=list)
    """Table names; empty for all existing tables."""
    asked_by_name: bool = False
    """Whether a user named these tables: ignores recent writes, read frequency and budget."""


@dataclass(frozen=True)
class Upkeeper:
    """Creates the upkeep definitions for the tables of a deployment."""

    upkept: Upkept
    read_settings: Callable[[], Settings]

    def definitions(self) -> dg.Definitions:
        """Return the job, the sensor and the schedule; the latter two are on by default."""
        job = self._job()
        return dg.Definitions(
            jobs=[job], sensors=[self._sensor()], schedules=[self._schedule(job)]
        )

    def _job(self) -> dg.JobDefinition:
        @dg.op(
            name=_OP,
            description="Measures tables, plans their upkeep, and does what is due.",
            out=dg.Out(dg.Nothing),
            required_resource_keys={"engine"},
        )
        def maintain(context: dg.OpExecutionContext, config: UpkeepConfig) -> None:
            self._run(context, context.resources.engine, config)

        @dg.job(
            name=JOB,
            description=(
                "Upkeep of tables: compaction, expiry of snapshots, manifests, orphans, stale"
                " branches, statistics; each where the table's health calls for it."
            ),
        )
        def maintain_tables() -> None:
            maintain()

        return maintain_tables

    def _run(
        self, context: dg.OpExecutionContext, engine: Engine, config: UpkeepConfig
    ) -> None:
        cached_engine = engine if config.tables else with_cached_locations(engine, self.upkept)
        tables = config.tables or self.upkept.tables(cached_engine)
        planned = plan_round(
            cached_engine, self.upkept, tables, named_by_user=config.asked_by_name
        )
        for proposal in planned.plan.proposals:
            context.log.warning(proposal)
        for name, reason in planned.unread.items():
            context.log.warning("%s is not kept: %s", name, reason)
        if not planned.plan.due:
            context.log.info("No upkeep is due of %s tables: nothing was done.", len(tables))

        def on_step(step: PlannedStep, result: StepResult) -> None:
            context.log_event(observation_of(step, result))

        records = carry_out(engine, self.upkept, planned, context.run_id, on_step)
        cached_engine = engine if config.tables else with_cached_locations(engine, self.upkept)
        record_health(
            context.instance,
            engine,
            self.upkept.health_table,
            config.tables or sorted(cached_engine.catalog.metadata_locations()),
            self.upkept.declared,
            context.run_id,
            known=planned.healths,
            find_pins=partial(pins_of, cached_engine, self.upkept),
            cached_engine=cached_engine,
        )
        failed = [record for record in records if record.outcome == "failed"]
        if failed:
            raise UpkeepFailed(
                "; ".join(f"{one.table}: {one.step} failed: {one.reason}" for one in failed),
                next_step="The other steps are done; it is tried again by itself.",
            )

    def _sensor(self) -> dg.SensorDefinition:
        @dg.sensor(
            name=SENSOR,
            job_name=JOB,
            minimum_interval_seconds=_SECONDS,
            default_status=dg.DefaultSensorStatus.RUNNING,
            description=(
                "Looks at the metadata of tables that changed since its last look, and asks for"
                " upkeep where it is due; starts no Spark."
            ),
        )
        def upkeep_when_due(
            context: dg.SensorEvaluationContext,
        ) -> dg.RunRequest | dg.SkipReason:
            working = dg.RunsFilter(job_name=JOB, statuses=_WORKING)
            if context.instance.get_run_records(working, limit=1):
                return dg.SkipReason("Upkeep is running.")
            return self._ask(context)

        return upkeep_when_due

    def _ask(self, context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        engine = with_cached_locations(open_engine(self.read_settings()), self.upkept)
        cursor = UpkeepCursor.from_json(context.cursor)
        locations, declared = {}, self.upkept.declared
        for name, location in sorted(engine.catalog.metadata_locations().items()):
            if name in declared:
                locations[name] = location
        worth = cursor.tables_to_check(locations, datetime.now(UTC))
        if not worth:
            return dg.SkipReason(
                "No table changed since the last look, and nothing is waited for."
            )
        # Steps that are due but not done are planned again: all tables share the budget.
        planned = plan_round(engine, self.upkept, worth, named_by_user=False)
        unread = {name: locations[name] for name in planned.unread}
        cursor = cursor.after(planned.plan, planned.healths, unread)
        context.update_cursor(cursor.to_json())
        if not planned.plan.due:
            return dg.SkipReason(f"No upkeep is due of {len(worth)} tables that changed.")
        tables = sorted({step.table for step in planned.plan.due})
        return dg.RunRequest(run_config=run_config(tables))

    def _schedule(self, job: dg.JobDefinition) -> dg.ScheduleDefinition:
        return dg.ScheduleDefinition(
            job=job,
            name="upkeep_nightly",
            cron_schedule="37 2 * * *",
            default_status=dg.DefaultScheduleStatus.RUNNING,
            description="Looks at all tables once a night, also while the sensor is off.",
        )


def run_config(tables: Sequence[str], *, named_by_user: bool = False) -> dict[str, Any]:
    """Return the run config for tables."""
    config = {"tables": list(tables), "asked_by_name": named_by_user}
    return {"ops": {_OP: {"config": config}}}
