"""The tables that the upkeep sensor checks: changed ones, and those with a step due by time."""

import json
from dataclasses import replace
from datetime import timedelta

import dagster as dg
import pytest

from lakehouse.definitions import definitions
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.upkeep_results import JOB
from lakehouse.settings import Settings
from lakehouse.upkeep.planner import Known, plan_upkeep
from lakehouse.upkeep.upkeep_plan import UpkeepPlan
from lakehouse.upkeep.upkeep_records import PastUpkeep
from lakehouse.upkeep.upkeep_sensor import SENSOR, checks_after, tables_to_check
from lakehouse_tests.upkeep.sick_tables import NOW, carried_out, partition, table

pytestmark = pytest.mark.unit


def test_a_table_is_checked_while_steps_are_due_then_after_a_change_or_by_time() -> None:
    snapshots = tuple(NOW - timedelta(days=days) for days in (20, 5, 4, 3, 2, 1))
    health = table("silver.t", partition(small=12), snapshot_times=snapshots)
    locations = {"silver.t": health.metadata_location}
    checks = {}
    assert tables_to_check(checks, locations, NOW) == ["silver.t"]

    plan = plan_upkeep([health], Known(), NOW)
    checks = checks_after(checks, plan, locations)
    assert tables_to_check(checks, locations, NOW) == ["silver.t"], "a step was due"

    (after,), records = carried_out(plan, [health], NOW)
    locations = {"silver.t": after.metadata_location}
    again = plan_upkeep([after], Known(past=PastUpkeep(tuple(records))), NOW)
    checks = json.loads(json.dumps(checks_after(checks, again, locations)))
    assert tables_to_check(checks, locations, NOW) == []
    assert tables_to_check(checks, {"silver.t": "other.json"}, NOW) == ["silver.t"]
    # Files can be listed again in seven days; the first snapshot is old enough in ten.
    assert tables_to_check(checks, locations, NOW + timedelta(days=6.9)) == []
    assert tables_to_check(checks, locations, NOW + timedelta(days=7)) == ["silver.t"]


def test_a_table_without_a_step_due_by_time_is_checked_after_a_change_only() -> None:
    health = replace(table("silver.t"), snapshot_id=None)
    locations = {"silver.t": health.metadata_location}
    checks = checks_after({}, plan_upkeep([health], Known(), NOW), locations)
    assert tables_to_check(checks, locations, NOW + timedelta(days=999)) == []


def test_an_unreadable_table_is_checked_again_after_a_change() -> None:
    plan = UpkeepPlan((), unread={"silver.t": "it is damaged"})
    checks = checks_after({}, plan, {"silver.t": "damaged.json"})
    assert tables_to_check(checks, {"silver.t": "damaged.json"}, NOW) == []
    assert tables_to_check(checks, {"silver.t": "next.json"}, NOW) == ["silver.t"]


def test_a_run_that_a_killed_daemon_never_queued_does_not_stop_the_sensor(
    settings: Settings,
) -> None:
    project = definitions(lambda: settings)
    with open_instance(settings) as instance:
        run = instance.create_run_for_job(project.resolve_job_def(JOB))
        assert run.status is dg.DagsterRunStatus.NOT_STARTED
        skipped = project.resolve_sensor_def(SENSOR)(dg.build_sensor_context(instance))
    assert skipped.skip_message.startswith("No table changed")
