"""Dagster sensor of upkeep: checks changed tables, and those with a step that is due by time."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import dagster as dg

from lakehouse.orchestration.deployment import open_engine
from lakehouse.orchestration.runs.run_in_process import UNFINISHED
from lakehouse.orchestration.runs.upkeep_results import JOB
from lakehouse.settings import Settings
from lakehouse.upkeep.upkeep_job import nightly_schedule, run_config, upkeep_job
from lakehouse.upkeep.upkeep_plan import UpkeepPlan
from lakehouse.upkeep.upkeep_run import Upkept, plan_run, with_cached_locations

SENSOR = "upkeep_when_due"
_INTERVAL_SECONDS = 300

Checks = Mapping[str, tuple[str, str | None]]
"""By table: its metadata location at the last check, and the time of the next one."""


def tables_to_check(checks: Checks, locations: Mapping[str, str], now: datetime) -> list[str]:
    """Return the tables that changed since their last check or have a step due by time.

    :param locations: current metadata locations, which the catalog has without reading files.
    """
    tables = []
    for table, location in locations.items():
        last_location, next_check = checks.get(table, ("", None))
        is_time = next_check is not None and datetime.fromisoformat(next_check) <= now
        if location != last_location or is_time:
            tables.append(table)
    return tables


def checks_after(checks: Checks, plan: UpkeepPlan, locations: Mapping[str, str]) -> Checks:
    """Return the checks including those of a plan; tables with due steps are checked again.

    Unreadable tables are checked again after a change and every night.
    """
    later = dict(checks)
    for table in plan.unread:
        later[table] = (locations[table], None)
    due = {step.table for step in plan.due}
    for table, health in plan.healths.items():
        later.pop(table, None)
        if table not in due:
            next_check = plan.next_check(table)
            time = next_check.isoformat() if next_check else None
            later[table] = (health.metadata_location, time)
    return later


def upkeep_definitions(upkept: Upkept, read_settings: Callable[[], Settings]) -> dg.Definitions:
    """Return the job, the sensor and the schedule; the latter two are on by default."""

    @dg.sensor(
        name=SENSOR,
        job_name=JOB,
        minimum_interval_seconds=_INTERVAL_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            "Checks the metadata of tables that changed since its last check, and requests upkeep"
            " if it is due; starts no Spark."
        ),
    )
    def upkeep_when_due(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        unfinished = dg.RunsFilter(job_name=JOB, statuses=UNFINISHED)
        if context.instance.get_run_records(unfinished, limit=1):
            return dg.SkipReason("Upkeep is running.")
        return _request(context, upkept, read_settings())

    job = upkeep_job(upkept)
    return dg.Definitions(
        jobs=[job], sensors=[upkeep_when_due], schedules=[nightly_schedule(job)]
    )


def _request(
    context: dg.SensorEvaluationContext, upkept: Upkept, settings: Settings
) -> dg.RunRequest | dg.SkipReason:
    engine = with_cached_locations(open_engine(settings), upkept)
    checks = json.loads(context.cursor or "{}")
    locations = {}
    for name, location in sorted(engine.catalog.metadata_locations().items()):
        if name in upkept.declared:
            locations[name] = location
    tables = tables_to_check(checks, locations, datetime.now(UTC))
    if not tables:
        return dg.SkipReason("No table changed since the last check, and no step waits.")
    # Steps that are due but not done are planned again: all tables share the budget.
    plan = plan_run(engine, upkept, tables, named_by_user=False)
    context.update_cursor(json.dumps(checks_after(checks, plan, locations)))
    if not plan.due:
        return dg.SkipReason(f"No upkeep is due of {len(tables)} tables that changed.")
    return dg.RunRequest(run_config=run_config(sorted({step.table for step in plan.due})))
