"""Records of Dagster with a value are deleted by its own API; other records stay."""

from collections.abc import Iterator

import dagster as dg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.scheduler.instigation import TickData, TickStatus

from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.privacy.places.mask_files import scrub_places
from lakehouse.settings import Settings
from lakehouse_tests.privacy.places.a_person import EMAIL, PERSON, traces

pytestmark = pytest.mark.unit

ORDERS, FRUITS = dg.AssetKey(["silver", "orders"]), dg.AssetKey("fruits")


@dg.asset(key=ORDERS, check_specs=[dg.AssetCheckSpec("valid", asset=ORDERS)])
def orders() -> Iterator[object]:
    check = dg.AssetCheckResult(
        check_name="valid", passed=False, description=f"{EMAIL} breaks it."
    )
    yield dg.MaterializeResult(metadata={"customer_id": 7}, check_results=[check])


@dg.asset(key=FRUITS)
def fruits(context: dg.AssetExecutionContext) -> None:
    context.log.info("apples")


@dg.op
def send() -> None:
    raise ValueError(f"{EMAIL} could not be reached")


@dg.op
def rest(context: dg.OpExecutionContext) -> None:
    context.log.info('{"customer_id": 7}')


@dg.job
def mail() -> None:
    send()


@dg.job
def pause() -> None:
    rest()


def tick(instance: dg.DagsterInstance, name: str, reason: str) -> None:
    instance.create_tick(
        TickData(
            instigator_origin_id=name,
            instigator_name=name,
            instigator_type=InstigatorType.SENSOR,
            status=TickStatus.SKIPPED,
            timestamp=0.0,
            selector_id=name,
            skip_reason=reason,
        )
    )


@pytest.fixture
def failed(settings: Settings) -> Settings:
    """A home with runs and ticks about the person, and others."""
    definitions = dg.Definitions([orders, fruits])
    with open_instance(settings) as instance:
        job = definitions.resolve_implicit_global_asset_job_def()
        for key in (ORDERS, FRUITS):
            assert job.execute_in_process(instance=instance, asset_selection=[key]).success
        mail.execute_in_process(instance=instance, raise_on_error=False)
        pause.execute_in_process(instance=instance)
        pause.execute_in_process(instance=instance, tags={"customer": EMAIL})
        tick(instance, "of the person", f"{EMAIL} waits")
        tick(instance, "of no one", "nothing is new")
    return settings


def scrub(settings: Settings) -> list[tuple[str, str]]:
    places = scrub_places(settings, [PERSON])
    return [(place.place, place.outcome) for place in places if place.values or place.files]


@pytest.mark.scenario
def test_records_without_values_stay_and_the_others_are_deleted_after_a_dry_run(failed):
    before = traces(failed.home)
    places = scrub_places(failed, [PERSON], is_dry=True)
    assert [place.files for place in places if place.outcome == "removed"] == [6]
    assert traces(failed.home) == before

    scrub(failed)

    with open_instance(failed) as instance:
        (run,) = instance.get_runs()
        assert run.asset_selection == {FRUITS}
        assert len(instance.all_logs(run.run_id)) > 5
        assert instance.get_latest_materialization_event(FRUITS)
        assert instance.get_latest_materialization_event(ORDERS) is None
        key = dg.AssetCheckKey(ORDERS, "valid")
        assert not instance.event_log_storage.get_asset_check_execution_history(key, limit=5)
        assert instance.get_ticks("of the person", "of the person") == []
        assert len(instance.get_ticks("of no one", "of no one")) == 1


def test_a_run_that_is_not_finished_is_left_to_the_next_call(settings):
    with open_instance(settings) as instance:
        instance.create_run_for_job(
            pause, status=dg.DagsterRunStatus.STARTED, tags={"customer": EMAIL}
        )

    assert ("Dagster's records of alive runs", "busy") in scrub(settings)
    assert traces(settings.home)


def test_a_record_that_cannot_be_deleted_is_reported(settings):
    with open_instance(settings) as instance:
        instance.run_storage.set_cursor_values({"cursor": EMAIL})

    assert ("Dagster's table kvs", "not reached") in scrub(settings)
