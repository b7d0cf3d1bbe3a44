"""What ends that a table is held back or that its run failed: a publish of these partitions, or by a person."""

from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from lakehouse.monitoring.detectors.failed_runs import look_at_runs
from lakehouse.monitoring.detectors.recoveries import look_for_mends
from lakehouse.monitoring.detectors.sources import Lookout
from lakehouse.monitoring.incidents import Broke, Incident
from lakehouse.orchestration.instance import open_instance
from lakehouse.settings import Settings

DAYS = ["2026-03-01", "2026-03-02", "2026-03-03"]
TABLE = "gold.days"


@dg.asset(key=["gold", "days"], partitions_def=dg.DailyPartitionsDefinition("2026-02-01"))
def days() -> None:
    """A table that is computed by day."""


@pytest.fixture
def lookout(settings: Settings):
    with open_instance(settings) as instance:
        graph = dg.Definitions([days]).resolve_asset_graph()
        yield Lookout(instance, graph, {}, (), settings, datetime.now(UTC))


def held(run_id: str = "", extent: list[str] = DAYS) -> Incident:
    at = datetime.now(UTC) - timedelta(minutes=1)
    return Incident.of(
        Broke(f"held {TABLE}", "held", at, "error", "", table=TABLE, run_id=run_id, extent=frozenset(extent))
    )


def after(incident: Incident, lookout: Lookout) -> Incident | None:
    left: Incident | None = incident
    for mended in look_for_mends(lookout, [incident], []):
        left = left.without(mended) if left else None
    return left


def publish(lookout: Lookout, partition: str | None, **metadata: str) -> None:
    lookout.instance.report_runless_asset_event(
        dg.AssetMaterialization(["gold", "days"], partition=partition, metadata=metadata)
    )


def test_each_day_that_is_published_is_held_no_more(lookout: Lookout) -> None:
    publish(lookout, DAYS[1])
    publish(lookout, "2026-02-01")
    left = after(held(), lookout)
    assert left is not None
    assert left.extent == {DAYS[0], DAYS[2]}
    publish(lookout, DAYS[0])
    publish(lookout, DAYS[2])
    assert after(held(), lookout) is None


def test_days_that_somebody_asked_for_and_that_failed_are_over_once_they_are_published(lookout: Lookout) -> None:
    tags = {"dagster/asset_partition_range_start": DAYS[0], "dagster/asset_partition_range_end": DAYS[1]}
    run = lookout.instance.create_run_for_job(
        dg.Definitions([days]).resolve_implicit_global_asset_job_def(),
        asset_selection=frozenset({dg.AssetKey(["gold", "days"])}),
        tags=tags,
    )
    lookout.instance.report_run_failed(run, "The process of this run (pid 7) is gone.")
    (broke,) = look_at_runs(lookout, {}).facts
    assert broke.commands[0] == f"lakehouse backfill {TABLE} --from {DAYS[0]} --to {DAYS[1]}"
    publish(lookout, DAYS[1])
    left = after(Incident.of(broke), lookout)
    assert left is not None
    assert left.extent == {DAYS[0]}
    publish(lookout, DAYS[0])
    assert after(Incident.of(broke), lookout) is None


def test_a_publish_of_no_day_ends_nothing(lookout: Lookout) -> None:
    publish(lookout, None)
    left = after(held(), lookout)
    assert left is not None
    assert left.extent == set(DAYS)


def test_what_a_person_published_ends_it_for_the_days_of_that_run(lookout: Lookout) -> None:
    tags = {"dagster/asset_partition_range_start": DAYS[0], "dagster/asset_partition_range_end": DAYS[1]}
    run = lookout.instance.create_run_for_job(dg.define_asset_job("j").resolve(asset_graph=lookout.graph), tags=tags)
    publish(lookout, None, refused_run=run.run_id, overridden_by="somebody", overridden_for="it is one")
    left = after(held(run.run_id), lookout)
    assert left is not None
    (mended,) = look_for_mends(lookout, [held(run.run_id)], [])
    assert mended.said.endswith(f"against its rules by somebody, as of run {run.run_id[:8]}: it is one")
    assert mended.links[0].endswith(f"/runs/{run.run_id}")
    assert left.extent == {DAYS[2]}


def test_the_days_of_a_run_are_told_by_its_tags(lookout: Lookout) -> None:
    job = dg.define_asset_job("j").resolve(asset_graph=lookout.graph)
    for tags, expected in [
        ({"dagster/partition": DAYS[0]}, {DAYS[0]}),
        ({"dagster/asset_partition_range_start": DAYS[0], "dagster/asset_partition_range_end": DAYS[2]}, set(DAYS)),
        ({}, set()),
    ]:
        run = lookout.instance.create_run_for_job(job, tags=tags)
        assert lookout.keys_of(TABLE, run) == expected
