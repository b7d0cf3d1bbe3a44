"""All checks are asked for once a day, and nothing else."""

import dagster as dg
import pytest

from lakehouse.definitions import TABLES, definitions
from lakehouse.iceberg.evolve.planning import ensure
from lakehouse.orchestration.asset_keys import table_name
from lakehouse.orchestration.deployment import open_engine
from lakehouse.settings import Settings

FRUITS = "bronze.raw_fruits"


def request(settings: Settings) -> dg.RunRequest | dg.SkipReason:
    repository = definitions(lambda: settings).get_repository_def()
    schedule = repository.get_schedule_def("check_tables_daily")
    # The context opens the instance once more. Left to the garbage collector, it would make the
    # closed one that before it the current one again, at any later moment.
    with (
        dg.instance_for_test() as instance,
        dg.build_schedule_context(instance, repository_def=repository) as context,
    ):
        found = schedule.evaluate_tick(context)
    return found.run_requests[0] if found.run_requests else dg.SkipReason(found.skip_message)


def test_the_job_has_every_check_and_writes_nothing() -> None:
    repository = definitions().get_repository_def()
    job = repository.get_job("check_tables")
    assert (
        job.asset_layer.asset_graph.asset_check_keys == repository.asset_graph.asset_check_keys
    )
    assert not job.asset_layer.selected_asset_keys


@pytest.mark.long
def test_without_tables_nothing_is_asked_for(settings: Settings) -> None:
    found = request(settings)
    assert isinstance(found, dg.SkipReason) and found.skip_message == "There is no table yet."


@pytest.mark.long
def test_only_tables_that_are_there_are_checked(settings: Settings) -> None:
    ensure(open_engine(settings), TABLES[FRUITS], "run")
    found = request(settings)
    assert isinstance(found, dg.RunRequest) and found.asset_check_keys
    assert {table_name(key.asset_key) for key in found.asset_check_keys} == {FRUITS}
    job = definitions().get_repository_def().get_job("check_tables")
    part = job.get_subset(
        asset_selection=found.asset_selection, asset_check_selection=set(found.asset_check_keys)
    ).asset_layer
    assert not part.selected_asset_keys
    assert part.asset_graph.asset_check_keys == set(found.asset_check_keys)
