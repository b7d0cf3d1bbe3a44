"""Run the checks of tables without writing them."""

from collections.abc import Callable, Iterable

import dagster as dg

from lakehouse.orchestration.asset_keys import asset_key, table_name
from lakehouse.orchestration.dagster_internals import graph_of_repository
from lakehouse.orchestration.deployment import open_engine
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.run_in_process import MakeDefinitions, materialize
from lakehouse.orchestration.runs.run_result import RunResult
from lakehouse.settings import Settings


def check(
    project: MakeDefinitions,
    settings: Settings,
    tables: Iterable[str],
) -> RunResult:
    """Evaluate all checks of some tables on their published rows.

    :param tables: names of existing tables.
    :raises UsageError: if none of them has a check.
    """
    selection = dg.AssetSelection.checks_for_assets(*map(asset_key, tables))
    with open_instance(settings) as instance:
        return materialize(project(lambda: settings), instance, selection)


def daily_check_definitions(read_settings: Callable[[], Settings]) -> dg.Definitions:
    """Return the job that evaluates all checks, and its daily schedule."""
    job = dg.define_asset_job(
        "check_tables",
        selection=dg.AssetSelection.all_asset_checks(),
        description=("Evaluates the checks of all tables on published rows, without writing."),
    )

    @dg.schedule(
        job=job,
        name="check_tables_daily",
        cron_schedule="43 5 * * *",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=("Requests the checks of all existing tables; each table is read once."),
    )
    def check_tables_daily(
        context: dg.ScheduleEvaluationContext,
    ) -> dg.RunRequest | dg.SkipReason:
        known = graph_of_repository(context.repository_def).asset_check_keys
        checked = {key: table_name(key.asset_key) for key in sorted(known)}
        there = open_engine(read_settings()).catalog.metadata_locations(checked.values())
        keys = [key for key, table in checked.items() if table in there]
        if not keys:
            return dg.SkipReason("There is no table yet.")
        return dg.RunRequest(asset_selection=[], asset_check_keys=keys)

    return dg.Definitions(jobs=[job], schedules=[check_tables_daily])
