"""Blocked tables and failed runs are resolved when the same partitions are published."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from lakehouse.alerts.alert_state import AlertState
from lakehouse.alerts.failed_and_blocked_runs import detect_run_events
from lakehouse.alerts.incidents import Firing, Incident, Resolved
from lakehouse.alerts.monitor import detect_reported
from lakehouse.alerts.monitor_context import MonitorContext
from lakehouse.orchestration.incident_reports import report_published
from lakehouse.orchestration.partitions.partition_bounds import range_tags
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.runs_for_stale_tables import RECOMPUTED_FOR_ERASURE
from lakehouse.settings import Settings

DAYS = ["2026-03-01", "2026-03-02", "2026-03-03"]
TABLE = "gold.days"
KEY = dg.AssetKey(["gold", "days"])
OLDER = "2026-02-01"


@dg.asset(key=KEY, partitions_def=dg.DailyPartitionsDefinition(OLDER))
def days() -> None:
    """A table with daily partitions."""


@pytest.fixture
def context(settings: Settings):
    with open_instance(settings) as instance:
        graph = dg.Definitions([days]).resolve_asset_graph()
        at = datetime.now(UTC) - timedelta(minutes=1)
        blocked = Firing(
            f"blocked {TABLE}",
            "blocked",
            at,
            "error",
            "",
            table=TABLE,
            affected_partitions=frozenset(DAYS),
        )
        state = AlertState(open={blocked.key: Incident.of(blocked)})
        yield MonitorContext(instance, graph, {}, (), settings, datetime.now(UTC), state=state)


def facts(context: MonitorContext) -> list[Firing | Resolved]:
    """Return the facts of runs and of reports."""
    return [*detect_run_events(context).facts, *detect_reported(context).facts]


def remaining(context: MonitorContext) -> set[str]:
    """Return the blocked partitions after a round; empty if the incident is resolved."""
    (incident,) = context.state.open.values()
    for fact in facts(context):
        if isinstance(fact, Resolved) and fact.key == incident.firing.key:
            after = incident.after_resolved(fact)
            if after is None:
                return set()
            incident = after
    return set(incident.affected_partitions)


def compute(context: MonitorContext, day: str) -> None:
    assert dg.materialize([days], partition_key=day, instance=context.instance).success


def failed_run(context: MonitorContext, tags: dict[str, str]) -> dg.DagsterRun:
    run = context.instance.create_run_for_job(
        dg.Definitions([days]).resolve_implicit_global_asset_job_def(),
        asset_selection=frozenset({KEY}),
        tags=tags,
    )
    context.instance.report_run_failed(run, "The process of this run (pid 7) is gone.")
    return run


def override(context: MonitorContext, run: dg.DagsterRun) -> None:
    """Report a publish as `lakehouse publish` does."""
    report_published(context.settings, TABLE, run.run_id, "published by ben: it is right")


def test_each_published_day_is_resolved(context: MonitorContext) -> None:
    compute(context, DAYS[1])
    compute(context, OLDER)
    assert remaining(context) == {DAYS[0], DAYS[2]}


def test_an_override_resolves_the_days_of_its_run(context: MonitorContext) -> None:
    run = failed_run(context, range_tags(DAYS[0], DAYS[1]))
    override(context, run)
    assert remaining(context) == {DAYS[2]}
    resolved = [fact for fact in facts(context) if isinstance(fact, Resolved)]
    assert {fact.how for fact in resolved} == {"published by ben: it is right"}


def test_a_new_incident_is_resolved_by_an_earlier_override(context: MonitorContext) -> None:
    """The failure and the override happened while nothing was monitored."""
    run = failed_run(context, range_tags(DAYS[0], DAYS[2]))
    override(context, run)
    found = facts(replace(context, state=AlertState()))
    (firing,) = (fact for fact in found if isinstance(fact, Firing))
    assert firing.key == f"failed {TABLE}"
    (resolved,) = (fact for fact in found if fact.key == firing.key and fact is not firing)
    assert resolved.affected_partitions == firing.affected_partitions == set(DAYS)


@pytest.mark.parametrize(
    ("tags", "command"),
    [
        ({}, f"lakehouse backfill {TABLE} --from {DAYS[0]} --to {DAYS[2]}"),
        ({RECOMPUTED_FOR_ERASURE: "R-1"}, "lakehouse erase --request R-1"),
    ],
)
def test_a_failed_run_shows_how_to_compute_its_days(
    context: MonitorContext, tags: dict[str, str], command: str
) -> None:
    failed_run(context, {**range_tags(DAYS[0], DAYS[2]), **tags})
    firing = detect_run_events(context).facts[0]
    assert isinstance(firing, Firing)
    assert firing.commands[0] == command
