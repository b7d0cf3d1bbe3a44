"""Dagster's memory of runs, which it keeps for ever by itself: the old ones are forgotten, a
day at a time.
"""

from datetime import UTC, datetime, timedelta

import dagster as dg

KEPT_DAYS = 90
_BATCH = 500
_ENDED = [
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
]


def forget_runs(instance: dg.DagsterInstance, before: datetime) -> int:
    """Delete the ended runs that were made before a moment, with their events; return how many
    those were.

    The last run of each table is kept, however old: what it materialized the catalog shows. Of a
    partition that others computed Dagster then knows no materialization. It looks at the oldest
    500 in one call, and can be interrupted and done again.
    """
    newest = {record.asset_entry.last_run_id for record in instance.get_asset_records()}
    filters = dg.RunsFilter(statuses=_ENDED, created_before=before)
    old = [
        record.dagster_run.run_id
        for record in instance.get_run_records(filters, ascending=True, limit=_BATCH)
    ]
    forgotten = [run_id for run_id in old if run_id not in newest]
    for run_id in forgotten:
        instance.delete_run(run_id)
    return len(forgotten)


def old_runs_definitions() -> dg.Definitions:
    """Make the job that forgets old runs, and the schedule that starts it once a day."""

    @dg.op(
        description=f"Deletes runs that are older than `days`, {KEPT_DAYS} unless it is said."
    )
    def forget_old(context: dg.OpExecutionContext, config: _Config) -> None:
        count = forget_runs(context.instance, datetime.now(UTC) - timedelta(days=config.days))
        context.log.info("%s runs older than %s days were forgotten.", count, config.days)

    @dg.job(
        name="forget_old_runs",
        description=(
            "Forgets old runs, so that Dagster's storage does not grow for ever. Tables know"
            " nothing of it."
        ),
    )
    def forget_old_runs() -> None:
        forget_old()

    schedule = dg.ScheduleDefinition(
        job=forget_old_runs,
        name="forget_old_runs_daily",
        cron_schedule="17 3 * * *",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=f"Forgets runs that are older than {KEPT_DAYS} days.",
    )
    return dg.Definitions(jobs=[forget_old_runs], schedules=[schedule])


class _Config(dg.Config):
    days: int = KEPT_DAYS
