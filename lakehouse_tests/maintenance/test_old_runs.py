"""Old runs are forgotten, and not what the catalog shows."""

from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test

from lakehouse.definitions import defs
from lakehouse.maintenance import old_runs
from lakehouse.maintenance.old_runs import forget_runs

pytestmark = pytest.mark.long

SOON = timedelta(hours=1)


@dg.asset
def table() -> None:
    """Something that is materialized."""


def runs(instance: dg.DagsterInstance) -> set[str]:
    return {run.run_id for run in instance.get_runs()}


def test_old_runs_that_ended_are_forgotten_but_the_newest_of_each_table() -> None:
    with dg.instance_for_test() as instance:
        first, second = (dg.materialize([table], instance=instance).run_id for _ in range(2))
        going = create_run_for_test(instance, status=dg.DagsterRunStatus.STARTED).run_id
        failed = create_run_for_test(instance, status=dg.DagsterRunStatus.FAILURE).run_id

        assert forget_runs(instance, datetime.now(UTC) - SOON) == 0
        assert runs(instance) == {first, second, going, failed}
        assert forget_runs(instance, datetime.now(UTC) + SOON) == 2
        assert runs(instance) == {second, going}
        assert instance.get_latest_materialization_event(table.key).run_id == second
        assert forget_runs(instance, datetime.now(UTC) + SOON) == 0


def test_no_partition_is_missing_then_however_many_runs_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The runs of partitions come before those that go, and more than one look takes."""
    monkeypatch.setattr(old_runs, "_BATCH", 2)
    days = ("a", "b", "c", "d", "e")

    @dg.asset(partitions_def=dg.StaticPartitionsDefinition(days))
    def by_day() -> None:
        """Something that is materialized by partitions."""

    with dg.instance_for_test() as instance:

        def compute(day: str) -> str:
            return dg.materialize([by_day], instance=instance, partition_key=day).run_id

        replaced = compute("a")
        kept = {compute(day) for day in days}
        failed = create_run_for_test(instance, status=dg.DagsterRunStatus.FAILURE).run_id
        assert runs(instance) == {replaced, failed, *kept}

        assert forget_runs(instance, datetime.now(UTC) + SOON) == 2
        assert runs(instance) == kept
        assert instance.get_materialized_partitions(by_day.key) == set(days)


def test_the_job_can_be_run() -> None:
    job = defs.get_repository_def().get_job("forget_old_runs")
    with dg.instance_for_test() as instance:
        old = create_run_for_test(instance, status=dg.DagsterRunStatus.FAILURE).run_id
        config = {"ops": {"forget_old": {"config": {"days": -1}}}}
        ran = job.execute_in_process(instance=instance, run_config=config)
        assert ran.success
        assert runs(instance) == {ran.run_id}
        assert old != ran.run_id
