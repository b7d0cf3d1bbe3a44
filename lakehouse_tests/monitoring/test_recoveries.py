"""What ends that a table is blocked or that its run failed: a publish of these partitions, or
by a person.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from lakehouse.monitoring.alert_state import AlertState
from lakehouse.monitoring.detectors import recoveries
from lakehouse.monitoring.detectors.failed_runs import detect_failed_runs
from lakehouse.monitoring.detectors.monitor_context import MonitorContext
from lakehouse.monitoring.detectors.recoveries import detect_recoveries
from lakehouse.monitoring.incidents import Firing, Incident, Resolved
from lakehouse.orchestration.instance import open_instance
from lakehouse.orchestration.partition_bounds import only_tags, range_tags
from lakehouse.orchestration.runs_for_stale_tables import RECOMPUTED_FOR_ERASURE
from lakehouse.settings import Settings

DAYS = ["2026-03-01", "2026-03-02", "2026-03-03"]
TABLE = "gold.days"


@dg.asset(key=["gold", "days"], partitions_def=dg.DailyPartitionsDefinition("2026-02-01"))
def days() -> None:
    """A table that is computed by day."""


@pytest.fixture
def context(settings: Settings):
    with open_instance(settings) as instance:
        graph = dg.Definitions([days]).resolve_asset_graph()
        yield MonitorContext(instance, graph, {}, (), settings, datetime.now(UTC))


def held(run_id: str = "", affected_partitions: list[str] = DAYS) -> Incident:
    at = datetime.now(UTC) - timedelta(minutes=1)
    return Incident.of(
        Firing(
            f"blocked {TABLE}",
            "blocked",
            at,
            "error",
            "",
            table=TABLE,
            run_id=run_id,
            affected_partitions=frozenset(affected_partitions),
        )
    )


def after(incident: Incident, context: MonitorContext) -> Incident | None:
    left: Incident | None = incident
    for resolved in detect_recoveries(context, [incident], []).facts:
        left = left.after_resolved(resolved) if left else None
    return left


def publish(context: MonitorContext, partition: str | None, **metadata: str) -> None:
    context.instance.report_runless_asset_event(
        dg.AssetMaterialization(["gold", "days"], partition=partition, metadata=metadata)
    )


def test_each_day_that_is_published_is_blocked_no_more(context: MonitorContext) -> None:
    publish(context, DAYS[1])
    publish(context, "2026-02-01")
    left = after(held(), context)
    assert left is not None
    assert left.affected_partitions == {DAYS[0], DAYS[2]}
    publish(context, DAYS[0])
    publish(context, DAYS[2])
    assert after(held(), context) is None


def test_days_that_somebody_asked_for_and_that_failed_are_over_once_they_are_published(
    context: MonitorContext,
) -> None:
    tags = {
        "dagster/asset_partition_range_start": DAYS[0],
        "dagster/asset_partition_range_end": DAYS[1],
    }
    run = context.instance.create_run_for_job(
        dg.Definitions([days]).resolve_implicit_global_asset_job_def(),
        asset_selection=frozenset({dg.AssetKey(["gold", "days"])}),
        tags=tags,
    )
    context.instance.report_run_failed(run, "The process of this run (pid 7) is gone.")
    (firing,) = detect_failed_runs(context).facts
    assert firing.commands[0] == f"lakehouse backfill {TABLE} --from {DAYS[0]} --to {DAYS[1]}"
    publish(context, DAYS[1])
    left = after(Incident.of(firing), context)
    assert left is not None
    assert left.affected_partitions == {DAYS[0]}
    publish(context, DAYS[0])
    assert after(Incident.of(firing), context) is None


def test_what_an_erasure_computes_anew_is_computed_again_by_its_request(
    context: MonitorContext,
) -> None:
    run = context.instance.create_run_for_job(
        dg.Definitions([days]).resolve_implicit_global_asset_job_def(),
        asset_selection=frozenset({dg.AssetKey(["gold", "days"])}),
        tags={**range_tags(DAYS[0], DAYS[2]), RECOMPUTED_FOR_ERASURE: "R-1"},
    )
    context.instance.report_run_failed(run, "The process of this run (pid 7) is gone.")

    (firing,) = detect_failed_runs(context).facts

    assert firing.commands[0] == "lakehouse erase --request R-1"


def test_a_day_is_blocked_no_more_however_many_others_were_published_before_it(
    context: MonitorContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recoveries, "_AT_ONCE", 2)
    for _ in range(5):
        publish(context, "2026-02-01")
    for day in DAYS:
        publish(context, day)
    assert after(held(), context) is None


def test_what_a_person_published_ends_it_however_much_was_published_before_it(
    context: MonitorContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recoveries, "_AT_ONCE", 2)
    run = context.instance.create_run_for_job(
        dg.define_asset_job("j").resolve(asset_graph=context.graph),
        tags={"dagster/partition": DAYS[0]},
    )
    for _ in range(5):
        publish(context, "2026-02-01")
    publish(context, None, **published_as_of(run))
    left = after(held(), context)
    assert left is not None
    assert left.affected_partitions == set(DAYS[1:])


def test_of_what_a_person_published_only_what_came_since_the_last_round_is_read(
    context: MonitorContext,
) -> None:
    run = context.instance.create_run_for_job(
        dg.define_asset_job("j").resolve(asset_graph=context.graph),
        tags={"dagster/partition": DAYS[0]},
    )
    publish(context, None, **published_as_of(run))
    publish(context, DAYS[1])
    # An event is seen some minutes after its own moment, at most.
    for minutes, expected in [(5, {DAYS[2]}), (15, {DAYS[0], DAYS[2]})]:
        left = after(held(), with_last_round(context, timedelta(minutes=minutes)))
        assert left is not None
        assert left.affected_partitions == expected


def test_what_is_seen_late_is_resolved_by_what_was_published_since(
    context: MonitorContext,
) -> None:
    run = context.instance.create_run_for_job(
        dg.define_asset_job("j").resolve(asset_graph=context.graph),
        tags=range_tags(DAYS[0], DAYS[2]),
    )
    publish(context, None, **published_as_of(run))
    round_of_now = with_last_round(context, timedelta(minutes=15))
    (resolved,) = detect_recoveries(round_of_now, [], [held().firing]).facts
    assert isinstance(resolved, Resolved)
    assert resolved.affected_partitions == set(DAYS)


def with_last_round(context: MonitorContext, later: timedelta) -> MonitorContext:
    """Return a round whose last one was so much later than now."""
    last = {recoveries.CURSOR: (context.now + later).isoformat()}
    return replace(context, state=AlertState(cursors=last))


def published_as_of(run: dg.DagsterRun) -> dict[str, str]:
    return {
        "refused_run": run.run_id,
        "overridden_by": "somebody",
        "overridden_for": "it is one",
    }


def test_a_publish_of_no_day_ends_nothing(context: MonitorContext) -> None:
    publish(context, None)
    left = after(held(), context)
    assert left is not None
    assert left.affected_partitions == set(DAYS)


def test_what_a_person_published_ends_it_for_the_days_of_that_run(
    context: MonitorContext,
) -> None:
    tags = {
        "dagster/asset_partition_range_start": DAYS[0],
        "dagster/asset_partition_range_end": DAYS[1],
    }
    run = context.instance.create_run_for_job(
        dg.define_asset_job("j").resolve(asset_graph=context.graph), tags=tags
    )
    publish(context, None, **published_as_of(run))
    left = after(held(run.run_id), context)
    assert left is not None
    (resolved,) = detect_recoveries(context, [held(run.run_id)], []).facts
    assert resolved.how.endswith(
        f"against its rules by somebody, as of run {run.run_id[:8]}: it is one"
    )
    assert resolved.links[0].endswith(f"/runs/{run.run_id}")
    assert left.affected_partitions == {DAYS[2]}


def test_the_days_of_a_run_are_told_by_its_tags(context: MonitorContext) -> None:
    job = dg.define_asset_job("j").resolve(asset_graph=context.graph)
    for tags, expected in [
        ({"dagster/partition": DAYS[0]}, {DAYS[0]}),
        (
            {
                "dagster/asset_partition_range_start": DAYS[0],
                "dagster/asset_partition_range_end": DAYS[2],
            },
            set(DAYS),
        ),
        (
            {
                **range_tags(DAYS[0], DAYS[2]),
                **only_tags([(DAYS[0], DAYS[0]), (DAYS[2], DAYS[2])]),
            },
            {DAYS[0], DAYS[2]},
        ),
        ({}, set()),
    ]:
        run = context.instance.create_run_for_job(job, tags=tags)
        assert context.keys_of(TABLE, run) == expected
