"""Deletes old Dagster runs once a day; Dagster itself keeps them forever."""

from datetime import UTC, datetime, timedelta

import dagster as dg

from lakehouse.orchestration.dagster_internals import last_materializations
from lakehouse.orchestration.runs.run_result import FINISHED

KEPT_DAYS = 90
_BATCH = 500
"""Runs or materializations per query."""


def forget_runs(instance: dg.DagsterInstance, before: datetime) -> int:
    """Delete finished runs that were created before a time, with their events; return the count.

    Keeps the run of the last materialization of each table and partition: without it, Dagster
    shows the partition as missing. Idempotent.
    """
    shown = _shown_runs(instance)
    filters = dg.RunsFilter(statuses=FINISHED, created_before=before)
    deleted: list[str] = []
    cursor = None
    while old := instance.get_run_records(filters, _BATCH, ascending=True, cursor=cursor):
        run_ids = [record.dagster_run.run_id for record in old]
        deleted += [run_id for run_id in run_ids if run_id not in shown]
        cursor = run_ids[-1]
    for run_id in deleted:
        instance.delete_run(run_id)
    return len(deleted)


def _shown_runs(instance: dg.DagsterInstance) -> set[str]:
    """Return the runs with the last materialization of a table or partition."""
    shown: set[str] = set()
    for record in instance.get_asset_records():
        entry = record.asset_entry
        if entry.last_run_id:
            shown.add(entry.last_run_id)
        storage_ids = last_materializations(instance, entry.asset_key)
        for first in range(0, len(storage_ids), _BATCH):
            batch = storage_ids[first : first + _BATCH]
            filters = dg.AssetRecordsFilter(entry.asset_key, storage_ids=batch)
            result = instance.fetch_materializations(filters, limit=_BATCH)
            shown.update(materialized.run_id for materialized in result.records)
    return shown


def old_runs_definitions() -> dg.Definitions:
    """Create the job that deletes old runs, and its daily schedule."""

    @dg.op(description=f"Deletes runs that are older than `days`, by default {KEPT_DAYS}.")
    def forget_old(context: dg.OpExecutionContext, config: _Config) -> None:
        count = forget_runs(context.instance, datetime.now(UTC) - timedelta(days=config.days))
        context.log.info("%s runs older than %s days were deleted.", count, config.days)

    @dg.job(
        name="forget_old_runs",
        description="Deletes old runs, so that Dagster's storage does not grow forever.",
    )
    def forget_old_runs() -> None:
        forget_old()

    schedule = dg.ScheduleDefinition(
        job=forget_old_runs,
        name="forget_old_runs_daily",
        cron_schedule="17 3 * * *",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=f"Deletes runs that are older than {KEPT_DAYS} days.",
    )
    return dg.Definitions(jobs=[forget_old_runs], schedules=[schedule])


class _Config(dg.Config):
    days: int = KEPT_DAYS
